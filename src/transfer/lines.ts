import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest } from "../errors.js";
import { parseJson } from "../validation/json.js";
import { faultsOfApplication, faultsOfSession } from "./checks.js";
import type { Header, Line } from "./format.js";
import { application, event, session } from "./record-shapes.js";
import {
  flag,
  integer,
  listOf,
  moment,
  object,
  optional,
  type Read,
  required,
  text,
} from "./shape.js";

/** How many levels a line may have within each other: more than any that we write. */
const deepest = 32;

const header = object({
  latchkey_export: required(integer),
  exported_at: optional(moment),
  store: optional(text),
  source: optional(text),
  events: optional(flag),
  pepper_checks: optional(listOf(text)),
});

const counts = object({
  applications: required(integer),
  sessions: required(integer),
  events: required(integer),
});

const content = object({
  application: optional(application),
  session: optional(session),
  event: optional(event),
  end: optional(counts),
});

/** Reads the first line of a file, or throws all that is wrong with it. */
export function readHeader(bytes: Uint8Array): Header {
  const { latchkey_export, exported_at, store, source, events, pepper_checks } = read(
    header,
    bytes,
  );
  return {
    format: latchkey_export,
    exportedAt: exported_at,
    store,
    source,
    events,
    pepperChecks: pepper_checks,
  };
}

/** Reads any other line, or throws all that is wrong with it. */
export function readLine(bytes: Uint8Array): Line {
  const line = readUnchecked(bytes);
  const faults = faultsIn(line);
  if (faults.length > 0) {
    throw invalidRequest(
      faults.map(({ field, message }) => ({
        // So it is called where it is a fault of the whole.
        field: field === "request" ? line.kind : `${line.kind}.${field}`,
        message,
      })),
    );
  }
  return line;
}

/** Reads a line that we wrote ourselves. */
export function readUnchecked(bytes: Uint8Array): Line {
  const { application, session, event, end } = read(content, bytes);
  const lines: (Line | undefined)[] = [
    application && { kind: "application", record: application },
    session && { kind: "session", record: session },
    event && { kind: "event", record: event },
    end && { kind: "end", counts: end },
  ];
  const [line, ...more] = lines.filter((line) => line !== undefined);
  if (!line || more.length > 0) {
    const message = "must have one member: application, session, event or end";
    throw invalidRequest({ field: "line", message });
  }
  return line;
}

function read<T>(shape: Read<T>, bytes: Uint8Array): T {
  const faults: FieldViolation[] = [];
  const content = shape(parseJson(bytes, deepest), "", faults);
  if (faults.length > 0) {
    throw invalidRequest(faults);
  }
  return content;
}

/** What a record may not hold. */
function faultsIn(line: Line): readonly FieldViolation[] {
  switch (line.kind) {
    case "application":
      return faultsOfApplication(line.record);
    case "session":
      return faultsOfSession(line.record);
    default:
      return [];
  }
}

/** A line of a file, without its end. */
export interface SplitLine {
  /** The first has number one. */
  readonly number: number;
  readonly bytes: Buffer;
  /** How many bytes of the file come before the next line. */
  readonly end: number;
  /** Whether the file has all of it: the last line of one that was cut off may have no end. */
  readonly isWhole: boolean;
  /** Whether it is longer than any record, so that only the beginning of it is kept. */
  readonly isTooLong: boolean;
}

/** The largest record is far smaller: requests have a limit. */
const longestLine = 32 * 1024 * 1024;

const newline = 0x0a;

/** Splits a file into lines, of which only one is held at a time. */
export async function* splitLines(
  chunks: AsyncIterable<Buffer>,
  longest = longestLine,
): AsyncGenerator<SplitLine, void, void> {
  let parts: Buffer[] = [];
  let size = 0;
  let number = 0;
  let end = 0;

  function keep(part: Buffer): void {
    size += part.length;
    if (size <= longest) {
      parts.push(part);
    }
  }

  function take(isWhole: boolean): SplitLine {
    const [only, ...more] = parts;
    const bytes = only && more.length === 0 ? only : Buffer.concat(parts);
    number++;
    end += size + (isWhole ? 1 : 0);
    const isTooLong = size > longest;
    parts = [];
    size = 0;
    return { number, bytes, end, isWhole, isTooLong };
  }

  for await (const chunk of chunks) {
    let start = 0;
    for (;;) {
      const at = chunk.indexOf(newline, start);
      if (at < 0) {
        break;
      }
      keep(chunk.subarray(start, at));
      yield take(true);
      start = at + 1;
    }
    if (start < chunk.length) {
      keep(chunk.subarray(start));
    }
  }
  if (size > 0) {
    yield take(false);
  }
}
