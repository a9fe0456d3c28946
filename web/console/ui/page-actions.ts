import { useEffect } from "react";
import type { MenuAction } from "./menu.js";

let current: readonly MenuAction[] = [];

/** Offers actions on what the page shows in the palette. */
export function usePageActions(actions: readonly MenuAction[]): void {
  useEffect(() => {
    current = actions;
    return () => {
      current = [];
    };
  });
}

export const pageActions = (): readonly MenuAction[] => current;
