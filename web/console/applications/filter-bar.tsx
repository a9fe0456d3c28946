import { useEffect, useState } from "react";
import { ListApplicationsRequestSchema } from "../../../gen/latchkey/v1/application_service_pb.js";
import { maxLengthOf } from "../../../src/contract/fields.js";
import { Choice } from "../ui/choice.js";
import { Field } from "../ui/field.js";
import { settlingTime } from "../ui/use-settled.js";
import { type Filters, statuses, types } from "./use-filters.js";

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
      const timer = setTimeout(() => onChange(wanted), settlingTime);
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
