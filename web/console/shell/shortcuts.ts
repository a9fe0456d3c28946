import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { useSignedInKey } from "../sign-in/signed-in-key.js";
import { pagesFor } from "./pages.js";

const isMac = /mac|iphone|ipad/i.test(navigator.platform);

/** The key that, held with K, opens the palette. */
export const modifierKey = isMac ? "⌘" : "Ctrl";

interface Shortcut {
  readonly keys: readonly string[];
  readonly does: string;
}

/** The shortcuts that a key can use, for the sheet. */
export function shortcutsFor(access: { may(permission: string): boolean }): readonly Shortcut[] {
  return [
    { keys: [modifierKey, "K"], does: "Search, go to a page or run an action" },
    { keys: ["/"], does: "Search in the list, or everywhere" },
    ...(access.may("application:create") ? [{ keys: ["n"], does: "New application" }] : []),
    ...pagesFor(access).map(({ key, label }) => ({ keys: ["g", key], does: `Go to ${label}` })),
    { keys: ["?"], does: "Show the keyboard shortcuts" },
  ];
}

/** Time for the second key of a sequence. */
const sequenceMs = 1_500;

interface ShortcutActions {
  openPalette(): void;
  openShortcuts(): void;
}

/** Handles the shortcuts. While the user types or a dialog is open, only the palette opens. */
export function useShortcuts({ openPalette, openShortcuts }: ShortcutActions): void {
  const access = useSignedInKey();
  const [, navigate] = useLocation();
  /** When `g` was pressed. */
  const startedAt = useRef(Number.NEGATIVE_INFINITY);

  function run(key: string): boolean {
    const isSequence = performance.now() - startedAt.current < sequenceMs;
    startedAt.current = Number.NEGATIVE_INFINITY;
    if (isSequence) {
      const page = pagesFor(access).find((candidate) => candidate.key === key);
      if (page) {
        navigate(page.path);
      }
      return page !== undefined;
    }
    switch (key) {
      case "g":
        startedAt.current = performance.now();
        return true;
      case "n":
        if (access.may("application:create")) {
          navigate("/applications/new");
        }
        return true;
      case "/":
        focusSearch() || openPalette();
        return true;
      case "?":
        openShortcuts();
        return true;
      default:
        return false;
    }
  }

  function onKeyDown(event: KeyboardEvent): void {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
      return;
    }
    const isModified = event.metaKey || event.ctrlKey || event.altKey;
    if (!isModified && !event.defaultPrevented && !isInUse(event.target) && run(event.key)) {
      event.preventDefault();
    }
  }

  const latest = useRef(onKeyDown);
  useEffect(() => {
    latest.current = onKeyDown;
  });
  useEffect(() => {
    const listener = (event: KeyboardEvent) => latest.current(event);
    addEventListener("keydown", listener);
    return () => removeEventListener("keydown", listener);
  }, []);
}

/** Whether the keys belong to a text field, an open list or a dialog. */
function isInUse(target: EventTarget | null): boolean {
  const typing =
    "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], [role=listbox], [role=menu]";
  return (
    (target instanceof Element && target.closest(typing) !== null) ||
    document.querySelector("[role=dialog]") !== null
  );
}

/** Focuses the search field of the page. Returns whether there is one. */
function focusSearch(): boolean {
  const field = document.querySelector<HTMLInputElement>("main search input");
  field?.focus();
  return field !== null;
}
