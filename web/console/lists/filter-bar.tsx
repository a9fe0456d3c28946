import { ListFilter, X } from "lucide-react";
import { type ComponentProps, type ReactNode, useRef } from "react";
import { Button } from "../ui/buttons.js";
import { LoadOnClick, lazyComponent } from "../ui/lazy.js";
import type { Filter } from "./filters.js";
import type { ChangeOptions, ChangeParams } from "./list-params.js";

const FilterPopover = lazyComponent(() => import("./filter-popover.js"));

interface FilterBarProps<Name extends string> {
  readonly filters: readonly Filter<Name>[];
  readonly values: Readonly<Record<Name, string>>;
  readonly onChange: ChangeParams<Record<Name, string>>;
  onClear(): void;
  /** The search and the order, if the list has them. */
  readonly children?: ReactNode;
}

/** A button that opens the fields of all filters. The filters that are set are shown below it. */
export function FilterBar<Name extends string>(props: FilterBarProps<Name>) {
  const { filters, values, onChange, onClear, children } = props;
  const change = (name: Name, value: string, options?: ChangeOptions) =>
    onChange({ [name]: value } as Record<Name, string>, options);
  // The buttons that remove filters disappear with them.
  const filterButton = useRef<HTMLButtonElement>(null);
  const focus = () => filterButton.current?.focus();
  const chosen = filters.filter(({ name }) => values[name] !== "");
  return (
    <search className="filter-area">
      <div className="filter-bar">
        <LoadOnClick
          script={FilterPopover}
          popup="dialog"
          button={(props) => <FilterButton {...props} ref={filterButton} />}
        >
          <FilterPopover
            trigger={<FilterButton ref={filterButton} />}
            filters={filters}
            values={values}
            onChange={(name, value, options) => change(name as Name, value, options)}
          />
        </LoadOnClick>
        {children}
      </div>
      {chosen.length > 0 && (
        <ul className="filter-chips" aria-label="Filters">
          {chosen.map(({ name, label, show }) => (
            <li key={name} className="filter-chip">
              <span className="muted">{label}</span>
              <span className="filter-value">{show ? show(values[name]) : values[name]}</span>
              <button
                type="button"
                aria-label={`Remove filter ${label}`}
                onClick={() => {
                  change(name, "");
                  focus();
                }}
              >
                <X size={12} aria-hidden />
              </button>
            </li>
          ))}
          <li>
            <Button
              tone="quiet"
              size="small"
              onClick={() => {
                onClear();
                focus();
              }}
            >
              Clear all
            </Button>
          </li>
        </ul>
      )}
    </search>
  );
}

function FilterButton(props: ComponentProps<typeof Button>) {
  return (
    <Button {...props} icon={ListFilter}>
      Filter
    </Button>
  );
}
