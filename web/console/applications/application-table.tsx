import { useWindowVirtualizer } from "@tanstack/react-virtual";
import {
  type CSSProperties,
  type ReactNode,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { Link } from "wouter";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useMediaQuery } from "../ui/hooks.js";
import { Problem } from "../ui/page.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";
import { StatusBadge, TypeBadge } from "./application-display.js";
import { type Filters, useApplicationRows } from "./application-query.js";

/** The height of a row in pixels, as a table row and as a card. */
const lineHeight = 45;
const cardHeight = 144;

/** Extra rows outside the viewport, for focus and fast scrolling. */
const overscan = 10;

interface ApplicationTableProps {
  readonly filters: Filters;
  readonly total: number;
}

/** A virtual table: only the visible rows are in the DOM. */
export function ApplicationTable({ filters, total }: ApplicationTableProps) {
  const isNarrow = useMediaQuery("(max-width: 820px)");
  const height = isNarrow ? cardHeight : lineHeight;
  const body = useRef<HTMLTableSectionElement>(null);
  const top = useOffsetTop(body);
  const rows = useWindowVirtualizer({
    count: total,
    estimateSize: () => height,
    overscan,
    scrollMargin: top,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measured rows have the old height.
  useEffect(() => rows.measure(), [height]);
  const visible = rows.getVirtualItems();
  const list = useApplicationRows(filters, visible[0]?.index ?? 0, visible.at(-1)?.index ?? 0);

  return (
    <>
      <Problem error={list.problem} />
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
          {visible.map(({ index, start, size }) => {
            const application = list.at(index);
            const rowProps = {
              index,
              style: { height: size, transform: `translateY(${start - top}px)` },
            };
            return application ? (
              <ApplicationRow key={index} application={application} {...rowProps} />
            ) : (
              <PendingRow key={index} {...rowProps} />
            );
          })}
        </tbody>
      </table>
    </>
  );
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

interface Column {
  readonly title: string;
  show(application: Application): ReactNode;
}

const columns: readonly Column[] = [
  {
    title: "Name",
    show: ({ id, name }) => (
      <Link href={`/applications/${id}`} title={name}>
        {name}
      </Link>
    ),
  },
  { title: "Type", show: ({ type }) => <TypeBadge type={type} /> },
  {
    title: "Status",
    show: ({ status, expiresAt }) => <StatusBadge status={status} expiresAt={expiresAt} />,
  },
  { title: "Last used", show: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} /> },
  { title: "Expires", show: ({ expiresAt }) => <ExpiryTime at={expiresAt} /> },
  { title: "Created", show: ({ createdAt }) => <TimeAgo at={createdAt} /> },
];

interface RowProps {
  readonly index: number;
  readonly style: CSSProperties;
}

function ApplicationRow({
  application,
  index,
  style,
}: RowProps & { readonly application: Application }) {
  return (
    <tr aria-rowindex={rowIndexOf(index)} style={style}>
      {columns.map(({ title, show }) => (
        <td key={title} data-title={title}>
          {show(application)}
        </td>
      ))}
    </tr>
  );
}

/** A placeholder while the row loads. */
function PendingRow({ index, style }: RowProps) {
  return (
    <tr aria-rowindex={rowIndexOf(index)} style={style} className="pending-row">
      {columns.map(({ title }) => (
        <td key={title}>{title === "Name" && <span className="visually-hidden">Loading…</span>}</td>
      ))}
    </tr>
  );
}

/** One-based, after the header row. */
function rowIndexOf(index: number): number {
  return index + 2;
}
