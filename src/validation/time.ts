import type { Duration, Timestamp } from "@bufbuild/protobuf/wkt";
import type { FieldViolation } from "../contract/problems.js";
import { invalidRequest } from "../errors.js";
import type { MaybePromise } from "../lib/maybe-promise.js";

/** The last moment that a date with a four-digit year can tell. */
export const lastMoment = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** The first moment that a date with a four-digit year can tell. */
const firstMoment = -62_135_596_800_000;

/** A moment as messages carry it. */
export function toTimestamp(moment: number): Timestamp;
export function toTimestamp(moment: number | undefined): Timestamp | undefined;
export function toTimestamp(moment: number | undefined): Timestamp | undefined {
  if (moment === undefined) {
    return undefined;
  }
  const seconds = Math.floor(moment / 1000);
  return {
    $typeName: "google.protobuf.Timestamp",
    seconds: BigInt(seconds),
    nanos: (moment - seconds * 1000) * 1_000_000,
  };
}

/** Reads the moment in a field of a request, to the millisecond, or throws where it is none that a date can tell. */
export function fromTimestamp({ seconds, nanos }: Timestamp, field: string): number {
  const moment = Number(seconds) * 1000 + Math.floor(nanos / 1_000_000);
  if (!(moment <= lastMoment && moment >= firstMoment && nanos >= 0 && nanos < 1_000_000_000)) {
    throw invalidRequest({ field, message: "must be a moment before the year 10000" });
  }
  return moment;
}

/** Reads the `expires_at` of a request, which must lie ahead and, where there is a limit, not too far. */
export async function readExpiry(
  timestamp: Timestamp | undefined,
  store: { now(): MaybePromise<number> },
  longest?: number,
): Promise<number | undefined> {
  if (!timestamp) {
    return undefined;
  }
  const moment = fromTimestamp(timestamp, "expires_at");
  const present = await store.now();
  if (moment <= present) {
    throw invalidRequest(violation("must be in the future"));
  }
  if (longest !== undefined && moment > present + longest) {
    throw invalidRequest(violation(`must be at most ${longest / 1000} seconds from now`));
  }
  return moment;
}

/** Reads a duration in whole milliseconds, whose limits the proto tells; a binary one may have odd parts. */
export function readDuration(duration: Duration, field: string): number {
  const { seconds, nanos } = duration;
  if (nanos < 0 || nanos >= 1_000_000_000) {
    throw invalidRequest({ field, message: "must be a duration such as 3600s" });
  }
  return Number(seconds) * 1000 + Math.ceil(nanos / 1_000_000);
}

function violation(message: string): FieldViolation {
  return { field: "expires_at", message };
}
