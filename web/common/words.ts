/** `starts with` for `starts_with`. */
export function inWords(name: string): string {
  return name.replaceAll("_", " ");
}
