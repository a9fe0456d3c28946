import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type FieldViolation, invalidRequest } from "./errors.js";
import type { Store } from "./store/store.js";

/** The last moment that a date with a four-digit year can tell. */
const lastMoment = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

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

/** Reads the `expires_at` of a request, which must lie ahead and, where there is a limit, not too far. */
export async function readExpiry(
  timestamp: Timestamp | undefined,
  store: Pick<Store, "now">,
  longest?: number,
): Promise<number | undefined> {
  if (!timestamp) {
    return undefined;
  }
  const moment = Number(timestamp.seconds) * 1000 + Math.floor(timestamp.nanos / 1_000_000);
  if (!(moment <= lastMoment && timestamp.nanos >= 0 && timestamp.nanos < 1_000_000_000)) {
    throw invalidRequest(violation("must be a moment before the year 10000"));
  }
  const present = await store.now();
  if (moment <= present) {
    throw invalidRequest(violation("must be in the future"));
  }
  if (longest !== undefined && moment > present + longest) {
    throw invalidRequest(violation(`must be at most ${longest / 1000} seconds from now`));
  }
  return moment;
}

function violation(message: string): FieldViolation {
  return { field: "expires_at", message };
}
