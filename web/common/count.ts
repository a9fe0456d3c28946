const number = new Intl.NumberFormat("en");

/** `2,007`. */
export function formatNumber(count: number): string {
  return number.format(count);
}

/** `1 session`, `2,007 sessions`. */
export function countOf(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
}
