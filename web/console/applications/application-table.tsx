import { useState } from "react";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { type Column, DataTable } from "../ui/data-table.js";
import { Problem } from "../ui/page.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";
import { StatusBadge, TypeBadge } from "./application-display.js";
import { type Filters, useApplicationRows } from "./application-query.js";

interface ApplicationTableProps {
  readonly filters: Filters;
  readonly total: number;
}

export function ApplicationTable({ filters, total }: ApplicationTableProps) {
  const [[first, last], setRange] = useState([0, 0]);
  const list = useApplicationRows(filters, first, last);
  return (
    <>
      <Problem error={list.problem} />
      <DataTable
        label="Applications, newest first"
        columns={columns}
        count={total}
        rowAt={list.at}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => `/applications/${id}`}
        isLoading={list.isLoading}
        onRange={(from, to) => setRange([from, to])}
      />
    </>
  );
}

const columns: readonly Column<Application>[] = [
  { title: "Name", cell: ({ name }) => <span title={name}>{name}</span> },
  { title: "Type", width: "110px", cell: ({ type }) => <TypeBadge type={type} /> },
  {
    title: "Status",
    width: "90px",
    cell: ({ status, expiresAt }) => <StatusBadge status={status} expiresAt={expiresAt} />,
  },
  { title: "Last used", width: "120px", cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} /> },
  { title: "Expires", width: "210px", cell: ({ expiresAt }) => <ExpiryTime at={expiresAt} /> },
  { title: "Created", width: "120px", cell: ({ createdAt }) => <TimeAgo at={createdAt} /> },
];
