import { openStorage } from "./storage.js";

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const storedTheme = openStorage("localStorage", "latchkey-theme");
/** In memory too, for browsers that block storage. */
let chosen: Theme = themes.find((theme) => theme === storedTheme.read()) ?? "auto";
const listeners = new Set<() => void>();

export function chosenTheme(): Theme {
  return chosen;
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  storedTheme.write(theme);
  applyTheme();
  for (const listener of listeners) {
    listener();
  }
}

/** Calls the listener after each choice. Returns a function that removes it. */
export function onThemeChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** "auto" follows the color scheme of the system. */
export function applyTheme(): void {
  document.documentElement.style.colorScheme = chosen === "auto" ? "light dark" : chosen;
}
