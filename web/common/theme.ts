import { openStorage } from "./storage.js";

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const storedTheme = openStorage("localStorage", "latchkey-theme");
/** Counts where the browser keeps nothing, too. */
let chosen: Theme = themes.find((theme) => theme === storedTheme.read()) ?? "auto";

export function chosenTheme(): Theme {
  return chosen;
}

export function chooseTheme(theme: Theme): void {
  chosen = theme;
  storedTheme.keep(theme);
  applyTheme();
}

/** Styles follow the colour scheme of the page, which is that of the system unless one was chosen. */
export function applyTheme(): void {
  document.documentElement.style.colorScheme = chosen === "auto" ? "light dark" : chosen;
}
