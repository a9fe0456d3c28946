import { styleText } from "node:util";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ClientEnvironment } from "./environment.js";

/** Where text is printed. */
export interface Display {
  readonly colors: Colors;
  /** Columns of the terminal; unlimited elsewhere. */
  readonly width?: number | undefined;
}

export interface Colors {
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
  dim(text: string): string;
  bold(text: string): string;
}

type Style = Parameters<typeof styleText>[0];

/** Colors a terminal only, unless the environment sets a preference. */
export function createColors(
  { isTTY }: Pick<NodeJS.WriteStream, "isTTY">,
  { colors: preference }: Pick<ClientEnvironment, "colors">,
): Colors {
  const isOn = preference ?? isTTY === true;
  const paint = (style: Style) => (text: string) =>
    isOn && text ? styleText(style, text, { validateStream: false }) : text;
  return {
    good: paint("green"),
    bad: paint("red"),
    warn: paint("yellow"),
    dim: paint("dim"),
    bold: paint("bold"),
  };
}

const second = 1_000;
const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", second],
] as const;

/** A duration in its largest unit. */
function formatDuration(milliseconds: number): string {
  const [unit, size] = units.find(([, size]) => milliseconds >= size) ?? units[3];
  return `${Math.floor(milliseconds / size)}${unit}`;
}

export function formatRelativeTime(
  time: Timestamp | undefined,
  now = Date.now(),
  absent = "–",
): string {
  if (!time) {
    return absent;
  }
  const distance = timestampMs(time) - now;
  if (distance > 0) {
    return `in ${formatDuration(distance)}`;
  }
  return distance > -second ? "just now" : `${formatDuration(-distance)} ago`;
}

export function formatTime(time: Timestamp | undefined, now = Date.now()): string | undefined {
  return time && `${formatIsoTime(time)} (${formatRelativeTime(time, now)})`;
}

export function formatIsoTime(time: Timestamp): string {
  return new Date(timestampMs(time)).toISOString();
}
