import { Search, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { mayContainKey } from "../../../src/contract/key-text.js";
import { FilterBar } from "../lists/filter-bar.js";
import {
  applicationFilter,
  choiceFilter,
  type Filter,
  plainOptions,
  textFilter,
} from "../lists/filters.js";
import { IconButton } from "../ui/buttons.js";
import { debounceMs } from "../ui/hooks.js";
import { lazyComponent } from "../ui/lazy.js";
import { Select } from "../ui/select.js";
import { labelOf } from "../validation/field-errors.js";
import {
  expiryChoices,
  type Filters,
  type ListParams,
  mayContainAnyKey,
  orders,
  statuses,
  types,
  unusedChoices,
  viewDefaults,
} from "./application-query.js";

const PermissionFilter = lazyComponent(async () => ({
  default: (await import("./application-filter-fields.js")).PermissionFilter,
}));

const { q, externalId } = ListApplicationsRequestSchema.field;

interface ApplicationFiltersProps {
  readonly params: ListParams;
  onSearch(text: string): void;
  onChange(changed: Partial<ListParams>): void;
  onClear(): void;
}

/** The search, the filters and the order of the list. */
export function ApplicationFilters(props: ApplicationFiltersProps) {
  const { params, onSearch, onChange, onClear } = props;
  return (
    <>
      <FilterBar
        // The view has its own.
        filters={filters.filter(({ name }) => !(name in viewDefaults[params.view]))}
        values={params}
        onChange={onChange}
        onClear={onClear}
      >
        <SearchField search={params.q} onChange={onSearch} />
        {params.view === "unused" && (
          <Select
            isInline
            label="Not used"
            options={unusedViewOptions}
            value={params.unused}
            onChange={(unused) => onChange({ unused })}
          />
        )}
        <Select
          isInline
          label="Sort"
          options={orderOptions}
          value={params.order}
          onChange={(order) => onChange({ order })}
        />
      </FilterBar>
      {mayContainAnyKey(params.q) && (
        <p role="status" className="hint">
          {mayContainKey(params.q)
            ? "Searching by key; it is not stored in the URL."
            : "Long words may be keys, so this search is not stored in the URL."}
        </p>
      )}
    </>
  );
}

interface SearchFieldProps {
  readonly search: string;
  onChange(search: string): void;
}

function SearchField({ search, onChange }: SearchFieldProps) {
  const [text, setText] = useState(search);
  const input = useRef<HTMLInputElement>(null);
  // Keep a trailing space while the user types.
  useEffect(() => setText((now) => (now.trim() === search ? now : search)), [search]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the typed text matters.
  useEffect(() => {
    const next = text.trim();
    if (next !== search) {
      const timer = setTimeout(() => onChange(next), debounceMs);
      return () => clearTimeout(timer);
    }
  }, [text]);
  return (
    <div className="search-field">
      <Search size={16} className="muted" aria-hidden />
      <input
        ref={input}
        type="search"
        aria-label="Search"
        placeholder="Name, description, ID or key"
        autoComplete="off"
        spellCheck={false}
        maxLength={maxLengthOf(q)}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {text !== "" && (
        <IconButton
          icon={X}
          label="Clear search"
          onClick={() => {
            setText("");
            input.current?.focus();
          }}
        />
      )}
    </div>
  );
}

const orderLabels: Readonly<Record<string, string>> = {
  newest: "Newest first",
  name: "Name",
  expires_at: "Next to expire",
  last_used_at: "Longest unused",
};
const orderOptions = orders.map((order) => ({ value: order, label: orderLabels[order] ?? order }));

const unusedViewOptions = unusedChoices.map((choice) => ({
  value: choice,
  label: choice === "never" ? "Never" : `For ${choice} days`,
}));

const filters: readonly Filter<Exclude<keyof Filters, "q">>[] = [
  choiceFilter({ name: "type", label: "Type", options: plainOptions(types), any: "Any type" }),
  choiceFilter({
    name: "status",
    label: "Status",
    options: plainOptions(statuses),
    any: "Any status",
  }),
  choiceFilter({
    name: "expires",
    label: "Expires",
    options: expiryChoices.map((days) => ({ value: days, label: `within ${days} days` })),
    any: "Any time",
  }),
  choiceFilter({
    name: "unused",
    label: "Last used",
    options: unusedChoices.map((choice) => ({
      value: choice,
      label: choice === "never" ? "never" : `not for ${choice} days`,
    })),
    any: "Any time",
  }),
  {
    name: "permission",
    label: "Permission",
    field: (props) => <PermissionFilter {...props} />,
  },
  applicationFilter({ name: "createdBy", label: "Created by" }),
  textFilter({
    name: "externalId",
    label: labelOf(externalId.name),
    hint: "The whole ID in the other system.",
    maxLength: maxLengthOf(externalId),
  }),
];
