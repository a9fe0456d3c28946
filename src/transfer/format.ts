import {
  type ExportEnd,
  type ExportHeader,
  ExportHeaderSchema,
  ExportLineSchema,
} from "../../gen/latchkey/store/v1/export_pb.js";
import type { Plain } from "../contract/message-converter.js";
import { invalidRequest } from "../errors.js";
import type { EventRecord } from "../store/port/events.js";
import type { ApplicationFields, SessionFields } from "../store/port/records.js";
import { parseJson } from "../validation/json.js";
import {
  type CheckedRecord,
  checkApplication,
  findEventViolations,
  findSessionViolations,
} from "./checks.js";
import { createReader } from "./line-reader.js";

/** The version of the file format. */
export const formatVersion = 1;

/** The kinds of records in the order of a file: a session comes after its application. */
export const recordKinds = ["application", "session", "event"] as const;
export type RecordKind = (typeof recordKinds)[number];

export type Counts = Record<keyof Plain<ExportEnd>, number>;

/** The first line of a file. */
export type Header = Plain<ExportHeader>;

/** A record of any kind. */
export type Item =
  | { readonly kind: "application"; readonly record: ApplicationFields }
  | { readonly kind: "session"; readonly record: SessionFields }
  | { readonly kind: "event"; readonly record: EventRecord };

/** A line after the first. */
type Line = Item | { readonly kind: "end"; readonly record: Counts };

export function noCounts(): Counts {
  return { applications: 0, sessions: 0, events: 0 };
}

/** The maximum nesting of a line, which no exported line reaches. */
const maxDepth = 32;

const readHeader = createReader(ExportHeaderSchema);
const readLine = createReader(ExportLineSchema);

/**
 * Parses the first line of a file, or throws a problem with all violations. The
 * header of another format may have fields that this version does not know, so
 * the format is checked first.
 */
export function parseHeaderLine(bytes: Uint8Array): Header {
  const json = parseJson(bytes, maxDepth);
  const format = (json as { readonly latchkey_export?: unknown } | null)?.latchkey_export;
  if (typeof format === "number" && format !== formatVersion) {
    throw new Error(
      `The file has format ${format}, but this version reads format ${formatVersion}. Use the version that wrote it.`,
    );
  }
  return readHeader(json) as Header;
}

/** Parses any other line, or throws a problem with all violations. */
export function parseRecordLine(
  bytes: Uint8Array,
  grantsLimit: number,
): Line & Pick<CheckedRecord, "warning"> {
  const line = parseUnchecked(bytes);
  const { violations, warning } = checkLine(line, grantsLimit);
  if (violations.length > 0) {
    throw invalidRequest(
      violations.map(({ field, message }) => ({
        // A violation of the message as a whole.
        field: field === "request" ? line.kind : `${line.kind}.${field}`,
        message,
      })),
    );
  }
  return warning ? { ...line, warning } : line;
}

/** Parses a line of our own export, without checking the values. */
export function parseUnchecked(bytes: Uint8Array): Line {
  const [member, ...more] = Object.entries(readLine(parseJson(bytes, maxDepth)));
  if (!member || more.length > 0) {
    const message = "must have one member: application, session, event or end";
    throw invalidRequest({ field: "line", message });
  }
  const [kind, record] = member;
  return { kind, record } as Line;
}

function checkLine({ kind, record }: Line, grantsLimit: number): CheckedRecord {
  switch (kind) {
    case "application":
      return checkApplication(record, grantsLimit);
    case "session":
      return { violations: findSessionViolations(record, grantsLimit) };
    case "event":
      return { violations: findEventViolations(record) };
    case "end":
      return { violations: [] };
  }
}

/** A line of a file, without its newline. */
export interface SplitLine {
  /** Starts at one. */
  readonly number: number;
  readonly bytes: Buffer;
  /** The offset of the next line. */
  readonly end: number;
  /** False for a last line without newline, as in a truncated file. */
  readonly isComplete: boolean;
  /** Whether it is longer than any record. Only its start is in `bytes`. */
  readonly isTooLong: boolean;
}

/** Far more than the largest record, because requests have a size limit. */
export const maxLineBytes = 32 * 1024 * 1024;

const newline = 0x0a;

/** Splits a file into lines. Holds one line in memory; `readline` would buffer lines of any length. */
export async function* splitLines(
  chunks: AsyncIterable<Buffer>,
  limit = maxLineBytes,
): AsyncGenerator<SplitLine, void, void> {
  let parts: Buffer[] = [];
  let size = 0;
  let number = 0;
  let end = 0;

  function append(part: Buffer): void {
    size += part.length;
    if (size <= limit) {
      parts.push(part);
    }
  }

  function take(isComplete: boolean): SplitLine {
    const [only, ...more] = parts;
    const bytes = only && more.length === 0 ? only : Buffer.concat(parts);
    number++;
    end += size + (isComplete ? 1 : 0);
    const isTooLong = size > limit;
    parts = [];
    size = 0;
    return { number, bytes, end, isComplete, isTooLong };
  }

  for await (const chunk of chunks) {
    let start = 0;
    for (;;) {
      const index = chunk.indexOf(newline, start);
      if (index < 0) {
        break;
      }
      append(chunk.subarray(start, index));
      yield take(true);
      start = index + 1;
    }
    if (start < chunk.length) {
      append(chunk.subarray(start));
    }
  }
  if (size > 0) {
    yield take(false);
  }
}
