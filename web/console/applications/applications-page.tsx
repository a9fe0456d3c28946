import { Link } from "wouter";
import { useAccess } from "../access/access.js";
import { Button } from "../ui/buttons.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { ApplicationTable } from "./application-table.js";
import "./applications.css";
import { useEffect, useState } from "react";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { Choice, Field } from "../ui/fields.js";
import { debounceMs } from "../ui/hooks.js";
import {
  type Filters,
  noFilters,
  statuses,
  types,
  useFilters,
  useFirstPage,
} from "./application-query.js";

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

interface FilterBarProps {
  readonly filters: Filters;
  onChange(changed: Partial<Filters>): void;
}

/** Whoever pastes a key by mistake must not find it in the address of the page. */
const keyLike = /lk_[a-z]{3}_/;

const longestSearch = maxLengthOf(ListApplicationsRequestSchema.field.namePrefix);

/** Narrows the list. */
export function FilterBar({ filters, onChange }: FilterBarProps) {
  return (
    <search className="filter-bar">
      <SearchField search={filters.search} onChange={(search) => onChange({ search })} />
      <Choice
        label="Type"
        choices={types}
        value={filters.type}
        onChange={(type) => onChange({ type })}
      />
      <Choice
        label="Status"
        choices={statuses}
        value={filters.status}
        onChange={(status) => onChange({ status })}
      />
    </search>
  );
}

interface SearchFieldProps {
  readonly search: string;
  onChange(search: string): void;
}

function SearchField({ search, onChange }: SearchFieldProps) {
  const [text, setText] = useState(search);
  const isKey = keyLike.test(text);
  // What is typed stays as it is where it is searched for already, also with a space at its end.
  useEffect(() => setText((now) => (now.trim() === search ? now : search)), [search]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is about what was typed alone.
  useEffect(() => {
    const wanted = text.trim();
    if (wanted !== search && !isKey) {
      const timer = setTimeout(() => onChange(wanted), debounceMs);
      return () => clearTimeout(timer);
    }
  }, [text]);
  return (
    <Field
      label="Search"
      errors={isKey ? ["This looks like a key. Keys are not searched for: use an id."] : []}
    >
      {(props) => (
        <input
          {...props}
          type="search"
          autoComplete="off"
          spellCheck={false}
          maxLength={longestSearch}
          placeholder="Name, or a whole id"
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      )}
    </Field>
  );
}
