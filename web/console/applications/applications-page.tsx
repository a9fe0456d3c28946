import { Link } from "wouter";
import { useAccess } from "../access/access.js";
import { Button } from "../ui/button.js";
import { NotAllowed } from "../ui/not-allowed.js";
import { Page } from "../ui/page.js";
import { Problem } from "../ui/problem.js";
import { ApplicationTable } from "./application-table.js";
import "./applications.css";
import { FilterBar } from "./filter-bar.js";
import { useFirstPage } from "./use-application-rows.js";
import { type Filters, noFilters, useFilters } from "./use-filters.js";

/** All applications, newest first. */
export default function ApplicationsPage() {
  const { may } = useAccess();
  return (
    <Page title="Applications" actions={may("application:create") && <NewLink />}>
      {may("application:read") ? <Applications /> : <NotAllowed permission="application:read" />}
    </Page>
  );
}

function NewLink() {
  return (
    <Link className="button" data-tone="primary" href="/applications/new">
      New application
    </Link>
  );
}

function Applications() {
  const [filters, change] = useFilters();
  const { data, error } = useFirstPage(filters);
  const total = data?.pagination?.totalItems;
  return (
    <>
      <FilterBar filters={filters} onChange={change} />
      <p role="status" className="muted">
        {total === undefined ? !error && "Loading…" : counted(total, filters)}
      </p>
      <Problem of={error} />
      {total === 0 && <NothingFound filters={filters} onClear={() => change(noFilters)} />}
      {total !== undefined && total > 0 && <ApplicationTable filters={filters} total={total} />}
    </>
  );
}

function counted(total: number, filters: Filters): string {
  const noun = total === 1 ? "application" : "applications";
  return `${total.toLocaleString("en")} ${noun}${isNarrowed(filters) ? " found" : ""}`;
}

function NothingFound({ filters, onClear }: { filters: Filters; onClear(): void }) {
  return (
    <div className="card nothing-found">
      {isNarrowed(filters) ? (
        <>
          <p>No applications match.</p>
          <Button onClick={onClear}>Clear the filters</Button>
        </>
      ) : (
        <p>There are no applications yet.</p>
      )}
    </div>
  );
}

function isNarrowed(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== "");
}
