const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;
const year = 365 * day;

/** Each unit from a number of seconds, largest first. Days match the form fields, so there are no months. */
const units: readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number, from: number][] = [
  ["year", year, 2 * year],
  ["day", day, day - hour / 2],
  ["hour", hour, hour - minute / 2],
  ["minute", minute, minute],
  ["second", 1, 0],
];
const words = new Intl.RelativeTimeFormat("en");

/** `3 minutes ago`, `in 30 days`. */
export function formatRelative(time: number, now: number): string {
  const seconds = Math.round((time - now) / 1_000);
  const [unit, size] = units.find(([, , from]) => Math.abs(seconds) >= from) ?? ["second", 1];
  return words.format(Math.round(seconds / size), unit);
}

/** `2:59` or `1:02:59`. */
export function formatCountdown(seconds: number): string {
  const hours = Math.floor(seconds / hour);
  const minutes = Math.floor((seconds % hour) / minute);
  const rest = String(seconds % minute).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}
