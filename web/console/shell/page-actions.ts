import type { LucideIcon } from "lucide-react";
import { useEffect } from "react";

/** An action on what the page shows. */
export interface PageAction {
  readonly label: string;
  readonly icon: LucideIcon;
  run(): void;
}

let current: readonly PageAction[] = [];

/** Offers actions in the palette while the page is shown. */
export function usePageActions(actions: readonly PageAction[]): void {
  useEffect(() => {
    current = actions;
    return () => {
      current = [];
    };
  });
}

export const pageActions = (): readonly PageAction[] => current;
