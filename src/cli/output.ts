import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { idStart, parseKey, secretStart } from "../contract/key-format.js";
import { shownDigits } from "../contract/key-text.js";
import { type Colors, createColors } from "../lib/terminal.js";
import { day, hour, minute } from "../lib/time-units.js";
import { createEncoder } from "../transport/rest/encode.js";
import { type ClientEnvironment, readClientEnvironment } from "./environment.js";
import { wrapForStderr } from "./errors.js";

export interface OutputFlags {
  readonly json?: boolean;
}

/** Prints the result of a command: text for people, or JSON. */
export interface Output {
  readonly isJson: boolean;
  readonly display: Display;
  /** Prints a message. Its JSON is the same as over REST. */
  show<Desc extends DescMessage>(
    schema: Desc,
    message: MessageShape<Desc>,
    text: (display: Display) => string,
  ): void;
  /** Prints one message of a stream. Its JSON is always on one line. */
  showLine<Desc extends DescMessage>(
    schema: Desc,
    message: MessageShape<Desc>,
    text: (display: Display) => string,
  ): void;
  /** Prints a value that is not a message of the API. */
  showValue(value: unknown, text: (display: Display) => string): void;
  /** Prints a note on stderr, unless the output is JSON. */
  note(text: string | undefined): void;
  /** Prints a warning on stderr. */
  warn(text: string): void;
}

export function createOutput({ json: isJson = false }: OutputFlags): Output {
  const { stdout, stderr } = process;
  const environment = readClientEnvironment();
  const display = {
    colors: colorsFor(stdout, environment),
    width: stdout.isTTY ? stdout.columns || 80 : undefined,
  };
  return {
    isJson,
    display,
    show(schema, message, text) {
      stdout.write(isJson ? formatJson(createEncoder(schema)(message).toString()) : text(display));
    },
    showLine(schema, message, text) {
      stdout.write(isJson ? jsonLine(createEncoder(schema)(message).toString()) : text(display));
    },
    showValue(value, text) {
      stdout.write(isJson ? formatJson(JSON.stringify(value)) : text(display));
    },
    note(text) {
      if (text !== undefined && !isJson) {
        stderr.write(`${colorsFor(stderr, environment).dim(wrapForStderr(text))}\n`);
      }
    },
    warn(text) {
      stderr.write(`${colorsFor(stderr, environment).warn(wrapForStderr(text))}\n`);
    },
  };
}

/** JSON for people on a terminal, on one line for programs. */
function formatJson(json: string): string {
  return process.stdout.isTTY
    ? `${escapeInvisible(JSON.stringify(JSON.parse(json), null, 2))}\n`
    : jsonLine(json);
}

function jsonLine(json: string): string {
  return `${process.stdout.isTTY ? escapeInvisible(json) : json}\n`;
}

/** Escapes the control and format characters that JSON leaves as they are: a terminal would interpret them. */
function escapeInvisible(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\u2028\u2029\p{Cf}]/gu, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`)
      .join(""),
  );
}

/** Where text is printed. */
export interface Display {
  readonly colors: Colors;
  /** Columns of the terminal; unlimited elsewhere. */
  readonly width?: number | undefined;
}

/** Colors a terminal only, unless the environment sets a preference. */
export function colorsFor(
  { isTTY }: Pick<NodeJS.WriteStream, "isTTY">,
  { colors: preference }: Pick<ClientEnvironment, "colors">,
): Colors {
  return createColors(preference ?? isTTY === true);
}

/** The kind of a key and the end of its id: enough to recognize it, and nothing of its secret. */
export function shortenKey(key: string): string {
  return parseKey(key)
    ? `${key.slice(0, idStart)}…${key.slice(secretStart - shownDigits, secretStart)}`
    : "…";
}

const second = 1_000;
const units = [
  ["d", day],
  ["h", hour],
  ["m", minute],
  ["s", second],
] as const;

/** A duration in the largest unit that expresses it exactly. */
export function formatExactDuration(milliseconds: number): string {
  const [unit, size] = units.find(([, size]) => milliseconds % size === 0) ?? ["ms", 1];
  return `${milliseconds / size}${unit}`;
}

/** A duration in its largest unit, rounded: a key that expires in 30 days does so in 29.9 a moment later. */
function formatDuration(milliseconds: number): string {
  const seconds = Math.round(milliseconds / second) * second;
  // 59.9 minutes are an hour.
  const [unit, size] = units.find(([, size]) => seconds >= size * 0.99) ?? units[3];
  return `${Math.max(1, Math.round(seconds / size))}${unit}`;
}

export function formatRelativeTime(time: Timestamp | undefined, absent = "–"): string {
  if (!time) {
    return absent;
  }
  const distance = timestampMs(time) - Date.now();
  if (distance > 0) {
    return `in ${formatDuration(distance)}`;
  }
  return distance > -second ? "just now" : `${formatDuration(-distance)} ago`;
}

export function formatTime(time: Timestamp | undefined): string | undefined {
  return time && `${formatUtcTime(time)} (${formatRelativeTime(time)})`;
}

/** For example `2026-01-31 12:00:00Z`, which options accept too. */
export function formatUtcTime(time: Timestamp): string {
  return new Date(timestampMs(time)).toISOString().replace("T", " ").replace(/\.\d+/, "");
}
