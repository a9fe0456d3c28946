import { type FieldViolation, invalidRequest } from "../errors.js";
import { parseJson } from "../json/parse-json.js";
import { faultsOfApplication, faultsOfSession } from "./check-record.js";
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
