import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useState,
  useSyncExternalStore,
} from "react";

/** A row to render, and its place in a long list. */
export interface RenderedRow {
  readonly index: number;
  readonly style?: CSSProperties;
  readonly measure?: (element: HTMLTableRowElement | null) => void;
}

interface RenderedRows {
  readonly rows: readonly RenderedRow[];
  /** The style of the table body. */
  readonly style?: CSSProperties;
}

/** Lists with at most this many rows are rendered whole. */
const maxWholeRows = 100;

/** Extra rows outside the viewport, for focus and fast scrolling. */
const overscan = 10;

/** Estimates in pixels, as a table row and as a card. The rows are measured. */
const lineHeight = 41;
const cardHeight = 104;

/** The rows to render: all of a short list, the visible ones of a long list. */
export function useRenderedRows(
  body: RefObject<HTMLElement | null>,
  count: number,
  onRange: ((first: number, last: number) => void) | undefined,
): RenderedRows {
  const hasCards = useMediaQuery("(max-width: 700px)");
  const height = hasCards ? cardHeight : lineHeight;
  const isVirtual = count > maxWholeRows;
  const top = useOffsetTop(body);
  const virtual = useWindowVirtualizer({
    count: isVirtual ? count : 0,
    estimateSize: () => height,
    overscan,
    scrollMargin: top,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measured rows have the old height.
  useEffect(() => virtual.measure(), [height]);
  const visible = virtual.getVirtualItems();
  const first = isVirtual ? (visible[0]?.index ?? 0) : 0;
  const last = isVirtual ? (visible.at(-1)?.index ?? 0) : count - 1;
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a new range matters.
  useEffect(() => onRange?.(first, last), [first, last]);
  if (!isVirtual) {
    return { rows: Array.from({ length: count }, (_, index) => ({ index })) };
  }
  return {
    style: { position: "relative", height: virtual.getTotalSize() },
    rows: visible.map(({ index, start }) => ({
      index,
      measure: virtual.measureElement,
      style: {
        position: "absolute",
        inset: "0 0 auto",
        transform: `translateY(${start - top}px)`,
      },
    })),
  };
}

/** The distance of an element from the top of the page. */
function useOffsetTop(element: RefObject<HTMLElement | null>): number {
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const measure = () => {
      const box = element.current?.getBoundingClientRect();
      setTop(Math.round((box?.top ?? 0) + scrollY));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [element]);
  return top;
}

function useMediaQuery(query: string): boolean {
  return useSyncExternalStore(
    (listener) => {
      const list = matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => matchMedia(query).matches,
  );
}
