import type { CSSProperties, ReactNode } from "react";
import { Link } from "wouter";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { Moment } from "../ui/moment.js";
import { StatusBadge, TypeBadge } from "./application-badges.js";

interface Column {
  readonly title: string;
  show(application: Application): ReactNode;
}

export const columns: readonly Column[] = [
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
  { title: "Last used", show: ({ lastUsedAt }) => <Moment at={lastUsedAt} /> },
  { title: "Expires", show: ({ expiresAt }) => <Moment at={expiresAt} /> },
  { title: "Created", show: ({ createdAt }) => <Moment at={createdAt} /> },
];

interface RowProps {
  /** Its place in the list. The first is 0. */
  readonly index: number;
  readonly style: CSSProperties;
}

export function ApplicationRow({
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

/** Stands where an application will be when it is there. */
export function PendingRow({ index, style }: RowProps) {
  return (
    <tr aria-rowindex={rowIndexOf(index)} style={style} className="pending-row">
      {columns.map(({ title }) => (
        <td key={title}>{title === "Name" && <span className="unseen">Loading…</span>}</td>
      ))}
    </tr>
  );
}

/** The first row is the one with the titles. */
function rowIndexOf(index: number): number {
  return index + 2;
}
