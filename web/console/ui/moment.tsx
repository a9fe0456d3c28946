import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useNow } from "./use-now.js";

const units: readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How far a moment is from now, in words: `3 minutes ago`, `in 2 days`. */
function distance(moment: number, now: number): string {
  const seconds = Math.round((moment - now) / 1_000);
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return words.format(Math.round(seconds / size), unit);
}

/** A moment as people say it, with the exact one to be found. */
export function Moment({
  at,
  absent = "never",
}: {
  readonly at: Timestamp | undefined;
  readonly absent?: string;
}) {
  const now = useNow(10_000);
  if (!at) {
    return <span className="muted">{absent}</span>;
  }
  const date = timestampDate(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {distance(date.getTime(), now)}
    </time>
  );
}
