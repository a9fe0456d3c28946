/** How many seconds are remembered: those of the moments that come again and again. */
const mostRemembered = 1_000;
const remembered = new Map<number, string>();

/** The date and time of a second since 1970, as in `2030-01-31T12:00:00`. */
export function dateText(second: number): string {
  const known = remembered.get(second);
  if (known !== undefined) {
    return known;
  }
  const text = new Date(second * 1000).toISOString().slice(0, -".000Z".length);
  if (remembered.size >= mostRemembered) {
    remembered.clear();
  }
  remembered.set(second, text);
  return text;
}
