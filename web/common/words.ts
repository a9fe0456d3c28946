/** `starts with` for `starts_with`. */
export function inWords(name: string): string {
  return name.replaceAll("_", " ");
}

/** `who am I` for `WhoAmI`. */
export function splitCamelCase(name: string): string {
  const words = name.split(/(?=[A-Z])/);
  return words.map((word) => (word === "I" ? word : word.toLowerCase())).join(" ");
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Whether a text contains every word of a search, in upper or lower case. */
export function containsWords(text: string, search: string): boolean {
  const lower = text.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => lower.includes(word));
}
