import { Fragment, type ReactElement, Suspense } from "react";
import { Popover } from "../ui/popover.js";
import type { Filter } from "./filters.js";
import type { ChangeOptions } from "./list-params.js";

interface FilterPopoverProps {
  /** The button that opens it. */
  readonly trigger: ReactElement;
  readonly filters: readonly Filter[];
  readonly values: Readonly<Record<string, string>>;
  onChange(name: string, value: string, options?: ChangeOptions): void;
}

/** The fields of all filters. It is open when it is mounted. */
export default function FilterPopover({ trigger, filters, values, onChange }: FilterPopoverProps) {
  return (
    <Popover title="Filters" trigger={trigger}>
      <div className="filter-fields">
        <Suspense fallback={<p className="muted">Loading…</p>}>
          {filters.map(({ name, label, field }) => (
            <Fragment key={name}>
              {field({
                label,
                value: values[name] ?? "",
                onChange: (value, options) => onChange(name, value, options),
              })}
            </Fragment>
          ))}
        </Suspense>
      </div>
    </Popover>
  );
}
