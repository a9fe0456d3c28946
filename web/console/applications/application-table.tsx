import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useEffect, useLayoutEffect, useRef, useState } from "react";
import { Problem } from "../ui/problem.js";
import { useMedia } from "../ui/use-media.js";
import { ApplicationRow, columns, PendingRow } from "./application-row.js";
import { useApplicationRows } from "./use-application-rows.js";
import type { Filters } from "./use-filters.js";

/** The height of a row, in pixels, where it is a line and where it is a card. */
const lineHeight = 45;
const cardHeight = 104;

/** Rows that are there beyond those in sight, so that focus and wheel find them. */
const overscan = 10;

interface ApplicationTableProps {
  readonly filters: Filters;
  /** How many there are. */
  readonly total: number;
}

/** All rows by their place, of which only those in sight are in the page. */
export function ApplicationTable({ filters, total }: ApplicationTableProps) {
  const isNarrow = useMedia("(max-width: 820px)");
  const height = isNarrow ? cardHeight : lineHeight;
  const body = useRef<HTMLTableSectionElement>(null);
  const top = useTopOf(body);
  const rows = useWindowVirtualizer({
    count: total,
    estimateSize: () => height,
    overscan,
    scrollMargin: top,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: rows that were measured have another height now.
  useEffect(() => rows.measure(), [height]);
  const inSight = rows.getVirtualItems();
  const list = useApplicationRows(filters, inSight[0]?.index ?? 0, inSight.at(-1)?.index ?? 0);

  return (
    <>
      <Problem of={list.problem} />
      <table
        className="application-table"
        aria-label="Applications, newest first"
        aria-rowcount={total + 1}
        aria-busy={list.isLoading}
      >
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ title }) => (
              <th key={title} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody ref={body} style={{ height: rows.getTotalSize() }}>
          {inSight.map(({ index, start, size }) => {
            const application = list.at(index);
            const place = {
              index,
              style: { height: size, transform: `translateY(${start - top}px)` },
            };
            return application ? (
              <ApplicationRow key={index} application={application} {...place} />
            ) : (
              <PendingRow key={index} {...place} />
            );
          })}
        </tbody>
      </table>
    </>
  );
}

/** How far an element is from the top of the page, which the height of what stands above it decides. */
function useTopOf(element: RefObject<HTMLElement | null>): number {
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
