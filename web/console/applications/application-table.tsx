import { type ReactNode, useEffect, useRef, useState } from "react";
import type { Application } from "../../../gen/latchkey/v1/application_service_pb.js";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { type Column, DataTable } from "../ui/data-table.js";
import { ExpiryTime, TimeAgo } from "../ui/time.js";
import { ApplicationLink, StatusBadge, TypeBadge } from "./application-display.js";
import type { ListParams, View } from "./application-query.js";
import type { ApplicationRows } from "./application-rows.js";
import { BulkActions } from "./bulk-actions.js";

interface ApplicationTableProps {
  readonly rows: ApplicationRows;
  readonly params: ListParams;
  readonly empty: ReactNode;
  onChange(changed: Partial<ListParams>): void;
}

export function ApplicationTable({ rows, params, empty, onChange }: ApplicationTableProps) {
  const { view, order } = params;
  const { may } = useSignedInKey();
  const { selected, select, selectAll } = useSelection(rows, params);
  return (
    <>
      <DataTable
        label="Applications"
        columns={columnsOf[view]}
        count={rows.count ?? 0}
        rowAt={rows.at}
        keyOf={({ id }) => id}
        hrefOf={({ id }) => `/applications/${id}`}
        sort={{ by: order, isDescending: order === "newest" }}
        onSort={(by) => onChange({ order: by })}
        isLoading={rows.isLoading}
        empty={rows.count === 0 && empty}
        onRange={rows.load}
        {...((may("application:update") || may("application:delete")) && {
          selection: {
            selected: new Set(selected.keys()),
            nameOf: ({ name }: Application) => name,
            onChange: select,
          },
        })}
      />
      <BulkActions
        selected={[...selected.values()]}
        total={rows.count ?? 0}
        onSelect={select}
        onSelectAll={selectAll}
      />
    </>
  );
}

/** The selected applications, including those outside the visible part of the list. A new list starts with none. */
function useSelection(rows: ApplicationRows, params: ListParams) {
  const [selected, setSelected] = useState<ReadonlyMap<string, Application>>(new Map());
  const reading = useRef(new AbortController());
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new list clears the selection.
  useEffect(() => {
    reading.current = new AbortController();
    setSelected(new Map());
    return () => reading.current.abort();
  }, [params]);
  function select(ids: Iterable<string>): void {
    const loaded = Array.from({ length: rows.count ?? 0 }, (_, index) => rows.at(index))
      .filter((row) => row !== undefined)
      .map((row) => [row.id, row] as const);
    const known = new Map([...selected, ...loaded]);
    setSelected(
      new Map(
        [...ids].flatMap((id) => {
          const application = known.get(id);
          return application ? [[id, application]] : [];
        }),
      ),
    );
  }
  async function selectAll(): Promise<void> {
    const { signal } = reading.current;
    const all = await rows.readAll(signal);
    // The user may have changed the list or left the page.
    if (!signal.aborted) {
      setSelected(new Map(all.map((application) => [application.id, application])));
    }
  }
  return { selected, select, selectAll };
}

const name: Column<Application> = {
  title: "Name",
  sortBy: "name",
  cell: ({ name }) => <span title={name}>{name}</span>,
};
const type: Column<Application> = {
  title: "Type",
  width: "104px",
  cell: ({ type }) => <TypeBadge type={type} />,
};
const status: Column<Application> = {
  title: "Status",
  width: "80px",
  cell: ({ status, expiresAt }) => <StatusBadge status={status} expiresAt={expiresAt} />,
};
const lastUsed: Column<Application> = {
  title: "Last used",
  width: "120px",
  compactWidth: "112px",
  sortBy: "last_used_at",
  cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} />,
};
const expires: Column<Application> = {
  title: "Expires",
  width: "236px",
  compactWidth: "104px",
  sortBy: "expires_at",
  cell: ({ expiresAt }) => <ExpiryTime at={expiresAt} />,
};
const created: Column<Application> = {
  title: "Created",
  width: "120px",
  compactWidth: "112px",
  sortBy: "newest",
  cell: ({ createdAt }) => <TimeAgo at={createdAt} />,
};
const createdBy: Column<Application> = {
  title: "Created by",
  width: "160px",
  compactWidth: "120px",
  hiddenIn: ["narrow"],
  cell: ({ createdBy }) =>
    createdBy === undefined ? (
      <span className="muted">the service</span>
    ) : (
      <ApplicationLink id={createdBy} />
    ),
};

const columnsOf: Readonly<Record<View, readonly Column<Application>[]>> = {
  all: [name, type, status, lastUsed, expires, { ...created, hiddenIn: ["narrow"] }],
  expiring: [name, type, status, expires, lastUsed, createdBy],
  unused: [name, type, status, lastUsed, created, createdBy],
};
