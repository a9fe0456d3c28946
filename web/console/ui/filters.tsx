import { X } from "lucide-react";
import type { ReactNode } from "react";
import { Button } from "./buttons.js";

export interface ChosenFilter {
  readonly label: string;
  readonly value: ReactNode;
  onRemove(): void;
}

interface FilterChipsProps {
  readonly filters: readonly ChosenFilter[];
  onClear(): void;
}

/** The filters that are set. Each can be removed, or all at once. */
export function FilterChips({ filters, onClear }: FilterChipsProps) {
  return filters.length === 0 ? null : (
    <ul className="filter-chips" aria-label="Filters">
      {filters.map(({ label, value, onRemove }) => (
        <li key={label} className="filter-chip">
          <span className="muted">{label}</span>
          <span className="filter-value">{value}</span>
          <button type="button" aria-label={`Remove filter ${label}`} onClick={onRemove}>
            <X size={12} aria-hidden />
          </button>
        </li>
      ))}
      <li>
        <Button tone="quiet" size="small" onClick={onClear}>
          Clear all
        </Button>
      </li>
    </ul>
  );
}
