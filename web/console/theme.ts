export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const place = "latchkey-theme";

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(place);
  return themes.find((theme) => theme === kept) ?? "auto";
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(place, theme);
  applyTheme();
}

/** Styles follow the colour scheme of the page, which is that of the system unless one was chosen. */
export function applyTheme(): void {
  const theme = chosenTheme();
  document.documentElement.style.colorScheme = theme === "auto" ? "light dark" : theme;
}
