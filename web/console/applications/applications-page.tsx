import { AppWindow, Plus, SearchX } from "lucide-react";
import { useEffect, useState } from "react";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { useAccess } from "../sign-in/signed-in-key.js";
import { Button, ButtonLink } from "../ui/buttons.js";
import { EmptyState, Skeleton } from "../ui/display.js";
import { Field } from "../ui/fields.js";
import { debounceMs } from "../ui/hooks.js";
import { NotAllowed, Page, Problem } from "../ui/page.js";
import { FilterSelect } from "../ui/select.js";
import { labelOf } from "../validation/field-errors.js";
import {
  type Filters,
  noFilters,
  statuses,
  types,
  useFilters,
  useFirstPage,
} from "./application-query.js";
import { ApplicationTable } from "./application-table.js";
import "./applications.css";

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
    <ButtonLink tone="primary" icon={Plus} href="/applications/new">
      New application
    </ButtonLink>
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
        {total !== undefined && countText(total, filters)}
      </p>
      <Problem error={error} />
      {total === undefined && !error && <Skeleton lines={6} label="Loading applications" />}
      {total === 0 && <NoApplications filters={filters} onClear={() => change(noFilters)} />}
      {total !== undefined && total > 0 && <ApplicationTable filters={filters} total={total} />}
    </>
  );
}

function countText(total: number, filters: Filters): string {
  const noun = total === 1 ? "application" : "applications";
  return `${total.toLocaleString("en")} ${noun}${isFiltered(filters) ? " found" : ""}`;
}

function NoApplications({ filters, onClear }: { filters: Filters; onClear(): void }) {
  return isFiltered(filters) ? (
    <EmptyState
      icon={SearchX}
      title="No applications match"
      action={<Button onClick={onClear}>Clear filters</Button>}
    />
  ) : (
    <EmptyState icon={AppWindow} title="No applications yet" action={<NewLink />}>
      An application has keys and permissions. Create one for each service or website that calls
      your API.
    </EmptyState>
  );
}

function isFiltered(filters: Filters): boolean {
  return Object.values(filters).some((value) => value !== "");
}

interface FilterBarProps {
  readonly filters: Filters;
  onChange(changed: Partial<Filters>): void;
}

/** A key pasted by mistake must not end up in the URL. */
const keyLike = /lk_[a-z]{3}_/;

const { namePrefix, externalId } = ListApplicationsRequestSchema.field;

function FilterBar({ filters, onChange }: FilterBarProps) {
  return (
    <search className="filter-bar">
      <SearchField
        label="Search"
        placeholder="Name or ID"
        maxLength={maxLengthOf(namePrefix)}
        search={filters.search}
        onChange={(search) => onChange({ search })}
      />
      <SearchField
        label={labelOf(externalId.name)}
        maxLength={maxLengthOf(externalId)}
        search={filters.externalId}
        onChange={(externalId) => onChange({ externalId })}
      />
      <FilterSelect
        label="Type"
        choices={types}
        value={filters.type}
        onChange={(type) => onChange({ type })}
      />
      <FilterSelect
        label="Status"
        choices={statuses}
        value={filters.status}
        onChange={(status) => onChange({ status })}
      />
    </search>
  );
}

interface SearchFieldProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly maxLength: number | undefined;
  readonly search: string;
  onChange(search: string): void;
}

function SearchField({ label, search, onChange, ...rest }: SearchFieldProps) {
  const [text, setText] = useState(search);
  const isKey = keyLike.test(text);
  // Keep a trailing space while the user types.
  useEffect(() => setText((now) => (now.trim() === search ? now : search)), [search]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the typed text matters.
  useEffect(() => {
    const next = text.trim();
    if (next !== search && !isKey) {
      const timer = setTimeout(() => onChange(next), debounceMs);
      return () => clearTimeout(timer);
    }
  }, [text]);
  return (
    <Field
      label={label}
      errors={isKey ? ["This looks like a key. Search by name or ID instead."] : []}
    >
      {(props) => (
        <input
          {...props}
          {...rest}
          type="search"
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      )}
    </Field>
  );
}
