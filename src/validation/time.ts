import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest } from "../errors.js";
import type { MaybePromise } from "../lib/async.js";
import { formatDuration } from "../lib/duration-text.js";

/** The end of the year 9999, in milliseconds. RFC 3339 has four-digit years. */
export const maxTimestamp = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The start of the year 1, in milliseconds. */
const minTimestamp = -62_135_596_800_000;

/** Whether the day and hour of an RFC 3339 timestamp exist. Parsers would accept it as a later one. */
export function isInCalendar(timestamp: string): boolean {
  const hour = timestamp.slice(0, "2030-01-31T12".length);
  const date = new Date(`${hour}:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(hour);
}

/** Converts milliseconds since the Unix epoch to a protobuf timestamp. */
export function toTimestamp(ms: number): Timestamp;
export function toTimestamp(ms: number | undefined): Timestamp | undefined;
export function toTimestamp(ms: number | undefined): Timestamp | undefined {
  if (ms === undefined) {
    return undefined;
  }
  const seconds = Math.floor(ms / 1000);
  return {
    $typeName: "google.protobuf.Timestamp",
    seconds: BigInt(seconds),
    nanos: (ms - seconds * 1000) * 1_000_000,
  };
}

/** Converts a timestamp of a request to milliseconds. Throws if RFC 3339 cannot express it. */
export function fromTimestamp({ seconds, nanos }: Timestamp, field: string): number {
  const ms = Number(seconds) * 1000 + Math.floor(nanos / 1_000_000);
  if (!(ms <= maxTimestamp && ms >= minTimestamp && nanos >= 0 && nanos < 1_000_000_000)) {
    throw invalidRequest({
      field,
      message: "must be between 0001-01-01 and 9999-12-31",
      code: "type.timestamp",
    });
  }
  return ms;
}

/** Reads the `expires_at` of a request, and what is wrong with it. */
export async function readExpiry(
  timestamp: Timestamp | undefined,
  store: { now(): MaybePromise<number> },
  longest?: number,
): Promise<{ expiresAt: number | undefined; expiryViolations: FieldViolation[] }> {
  if (!timestamp) {
    return { expiresAt: undefined, expiryViolations: [] };
  }
  const expiresAt = fromTimestamp(timestamp, "expires_at");
  const expiryViolations = findExpiryViolations(expiresAt, await store.now(), longest);
  return { expiresAt, expiryViolations };
}

/** Finds what is wrong with an `expires_at`: it must be in the future, and at most `longest` milliseconds away. */
export function findExpiryViolations(
  expiresAt: number,
  now: number,
  longest = Number.POSITIVE_INFINITY,
): FieldViolation[] {
  if (expiresAt <= now) {
    return [violation("must be in the future", "timestamp.gt_now")];
  }
  return expiresAt > now + longest
    ? [violation(`must be at most ${formatDuration(longest)} from now`, "timestamp.within")]
    : [];
}

/** Reads a duration in milliseconds. Binary messages can carry nanoseconds out of range, which the proto rules do not cover. */
export function readDuration(duration: Duration, field: string): number {
  const { seconds, nanos } = duration;
  if (nanos < 0 || nanos >= 1_000_000_000) {
    throw invalidRequest({
      field,
      message: "must be a duration such as 3600s",
      code: "type.duration",
    });
  }
  return Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
}

function violation(message: string, code: string): FieldViolation {
  return { field: "expires_at", message, code };
}
