import { create } from "@bufbuild/protobuf";
import { ListFilter, Search, X } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { mayContainKey } from "../../../src/contract/key-text.js";
import { usePermissionSuggestions } from "../rules/permission-input.js";
import { Button, IconButton } from "../ui/buttons.js";
import { Combobox } from "../ui/combobox.js";
import { Field } from "../ui/fields.js";
import { type ChosenFilter, FilterChips } from "../ui/filters.js";
import { debounceMs } from "../ui/hooks.js";
import { Popover } from "../ui/popover.js";
import { type Option, Select } from "../ui/select.js";
import { labelOf, useFieldErrors } from "../validation/field-errors.js";
import { ApplicationName } from "./application-display.js";
import { ApplicationField } from "./application-field.js";
import {
  chosenFilters,
  expiryDays,
  type Filters,
  type ListParams,
  mayBeKey,
  noFilters,
  orders,
  statuses,
  types,
  unusedDays,
} from "./application-query.js";

const { q, externalId } = ListApplicationsRequestSchema.field;

interface FilterBarProps {
  readonly params: ListParams;
  onSearch(text: string): void;
  onChange(changed: Partial<ListParams>): void;
}

/** The search, the filters and the order of the list. */
export function FilterBar({ params, onSearch, onChange }: FilterBarProps) {
  return (
    <search className="filter-area">
      <div className="filter-bar">
        <SearchField search={params.q} onChange={onSearch} />
        <Popover title="Filters" trigger={<Button icon={ListFilter}>Filter</Button>}>
          <FilterFields params={params} onChange={onChange} />
        </Popover>
        <Select
          isInline
          label="Sort"
          options={orderOptions}
          value={params.order}
          onChange={(order) => onChange({ order })}
        />
      </div>
      {mayBeKey(params.q) && (
        <p role="status" className="hint">
          {mayContainKey(params.q)
            ? "Searching by key; it is not kept in the address."
            : "Long words may be keys, so this search is not kept in the address."}
        </p>
      )}
      <FilterChips
        filters={toChips(params, onChange)}
        onClear={() => {
          onSearch("");
          onChange(noFilters);
        }}
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
        type="search"
        aria-label="Search"
        placeholder="Search by name, description, external ID, ID or key"
        autoComplete="off"
        spellCheck={false}
        maxLength={maxLengthOf(q)}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      {text !== "" && <IconButton icon={X} label="Clear search" onClick={() => setText("")} />}
    </div>
  );
}

const orderLabels: Readonly<Record<string, string>> = {
  newest: "Newest first",
  name: "Name",
  expires_at: "Next to expire",
  last_used_at: "Longest unused",
};
const orderOptions = toOptions(orders, (order) => orderLabels[order] ?? order);
const typeOptions = toOptions(types, (type) => type, "Any type");
const statusOptions = toOptions(statuses, (status) => status, "Any status");
const expiryOptions = toOptions(expiryDays, expiryLabel, "Any time");
const unusedOptions = toOptions(unusedDays, unusedLabel, "Any time");

function expiryLabel(days: string): string {
  return `within ${days} days`;
}

function unusedLabel(days: string): string {
  return `not for ${days} days`;
}

/** `any` is the option without a filter. */
function toOptions(
  values: readonly string[],
  toLabel: (value: string) => string,
  any?: string,
): readonly Option[] {
  return [
    ...(any === undefined ? [] : [{ value: "", label: any }]),
    ...values.map((value) => ({ value, label: toLabel(value) })),
  ];
}

type FilterFieldsProps = Pick<FilterBarProps, "params" | "onChange">;

function FilterFields({ params, onChange }: FilterFieldsProps) {
  return (
    <div className="filter-fields">
      <Select
        label="Type"
        options={typeOptions}
        value={params.type}
        onChange={(type) => onChange({ type })}
      />
      <Select
        label="Status"
        options={statusOptions}
        value={params.status}
        onChange={(status) => onChange({ status })}
      />
      {params.view !== "expiring" && (
        <Select
          label="Expires"
          options={expiryOptions}
          value={params.expires}
          onChange={(expires) => onChange({ expires })}
        />
      )}
      {params.view !== "unused" && (
        <Select
          label="Last used"
          options={unusedOptions}
          value={params.unused}
          onChange={(unused) => onChange({ unused })}
        />
      )}
      <PermissionFilter
        value={params.permission}
        onChange={(permission) => onChange({ permission })}
      />
      <ApplicationField
        label="Created by"
        value={params.createdBy}
        onChange={(createdBy) => onChange({ createdBy })}
      />
      <ExternalIdFilter
        value={params.externalId}
        onChange={(externalId) => onChange({ externalId })}
      />
    </div>
  );
}

interface TextFilterProps {
  readonly value: string;
  onChange(value: string): void;
}

function PermissionFilter({ value, onChange }: TextFilterProps) {
  const [text, setText] = useState(value);
  const suggestions = usePermissionSuggestions(text.trim());
  const request = useMemo(
    () =>
      create(ListApplicationsRequestSchema, text.trim() === "" ? {} : { permission: text.trim() }),
    [text],
  );
  const { permission: invalid } = useFieldErrors(ListApplicationsRequestSchema, request);
  const errors = keyErrors(text) ?? invalid;
  useCommit(text.trim(), value, errors === undefined, onChange);
  return (
    <Combobox
      label="Permission"
      placeholder="token:read"
      hint="Held directly or by a rule."
      errors={errors}
      suggestions={suggestions}
      text={text}
      onText={setText}
      onChoose={setText}
    />
  );
}

function ExternalIdFilter({ value, onChange }: TextFilterProps) {
  const [text, setText] = useState(value);
  const errors = keyErrors(text);
  useCommit(text.trim(), value, errors === undefined, onChange);
  return (
    <Field
      label={labelOf(externalId.name)}
      hint="The whole ID in the other system."
      errors={errors}
    >
      {(props) => (
        <input
          {...props}
          autoComplete="off"
          spellCheck={false}
          maxLength={maxLengthOf(externalId)}
          value={text}
          onChange={({ target }) => setText(target.value)}
        />
      )}
    </Field>
  );
}

/** Filters are in the URL, where a key must not be. */
function keyErrors(text: string): readonly string[] | undefined {
  return mayContainKey(text)
    ? ["contains a key, and keys must not be in URLs: use the search field"]
    : undefined;
}

/** Applies a typed filter once the user pauses or closes the filters. */
function useCommit(
  text: string,
  value: string,
  isValid: boolean,
  onChange: (value: string) => void,
): void {
  const pending = useRef<() => void>(undefined);
  useEffect(() => {
    const { pathname } = location;
    return () => {
      // The user may have left the page instead.
      if (location.pathname === pathname) {
        pending.current?.();
      }
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the typed text matters.
  useEffect(() => {
    if (text !== value && isValid) {
      const commit = () => {
        pending.current = undefined;
        onChange(text);
      };
      pending.current = commit;
      const timer = setTimeout(commit, debounceMs);
      return () => {
        clearTimeout(timer);
        pending.current = undefined;
      };
    }
  }, [text, isValid]);
}

const filterLabels: Readonly<Partial<Record<keyof Filters, string>>> = {
  unused: "Last used",
  createdBy: "Created by",
  externalId: labelOf(externalId.name),
};

function toChips(params: ListParams, onChange: FilterBarProps["onChange"]): ChosenFilter[] {
  return chosenFilters(params)
    .filter((name) => name !== "q")
    .map((name) => ({
      label: filterLabels[name] ?? labelOf(name),
      value: chipValue(name, params[name]),
      onRemove: () => onChange({ [name]: "" }),
    }));
}

function chipValue(name: keyof Filters, value: string) {
  switch (name) {
    case "expires":
      return expiryLabel(value);
    case "unused":
      return unusedLabel(value);
    case "createdBy":
      return <ApplicationName id={value} />;
    default:
      return value;
  }
}
