import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";

const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** How long something is, in its largest unit. */
function durationText(milliseconds: number): string {
  const [unit, size] = units.find(([, size]) => milliseconds >= size) ?? units[3];
  return `${Math.floor(milliseconds / size)}${unit}`;
}

/** When something is, seen from now. */
export function relativeText(
  moment: Timestamp | undefined,
  now = Date.now(),
  absent = "–",
): string {
  if (!moment) {
    return absent;
  }
  const distance = timestampMs(moment) - now;
  return distance > 0 ? `in ${durationText(distance)}` : `${durationText(-distance)} ago`;
}

/** A moment, and how far it is. */
export function momentText(moment: Timestamp | undefined, now = Date.now()): string | undefined {
  return moment && `${isoText(moment)} (${relativeText(moment, now)})`;
}

export function isoText(moment: Timestamp): string {
  return new Date(timestampMs(moment)).toISOString();
}
