import { X } from "lucide-react";
import type { ReactNode } from "react";
import { formatNumber } from "../../common/count.js";
import { IconButton } from "../ui/buttons.js";

interface SelectionBarProps {
  readonly count: number;
  /** The length of the list, which may be longer than what is loaded. */
  readonly total: string;
  /** Buttons for the selected items. */
  readonly children: ReactNode;
  onClear(): void;
}

/** Stays at the bottom of the window while items are selected. */
export function SelectionBar({ count, total, children, onClear }: SelectionBarProps) {
  return count === 0 ? null : (
    <section className="selection-bar" aria-label="Selection">
      <span role="status">{`${formatNumber(count)} of ${total} selected`}</span>
      <div className="actions">{children}</div>
      <IconButton icon={X} label="Clear selection" onClick={onClear} />
    </section>
  );
}
