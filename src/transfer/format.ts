import type { EventRecord } from "../store/port/events.js";
import type { ImportedApplication, ImportedSession } from "../store/port/transfer.js";

/** The number of the format that this version writes and reads. */
export const formatNumber = 1;

/** The kinds of records, in the order in which a file has them: a session comes after its application. */
export const recordKinds = ["application", "session", "event"] as const;
export type RecordKind = (typeof recordKinds)[number];

/** How many records of each kind a file has. */
export type Counts = Record<`${RecordKind}s`, number>;

/** What the first line of a file tells. One that was written by hand may leave out all but the format. */
export interface Header {
  readonly format: number;
  readonly exportedAt?: number | undefined;
  /** The kind of the store. */
  readonly store?: string | undefined;
  /** Tells the data that it was made of from all others, and nothing else. */
  readonly source?: string | undefined;
  /** Whether events are in it, as they are where this is left out. */
  readonly events?: boolean | undefined;
  /** See pepper-checks.ts. */
  readonly pepperChecks?: readonly string[] | undefined;
}

/** A record of any kind. */
export type Item =
  | { readonly kind: "application"; readonly record: ImportedApplication }
  | { readonly kind: "session"; readonly record: ImportedSession }
  | { readonly kind: "event"; readonly record: EventRecord };

/** What a line after the first tells. */
export type Line = Item | { readonly kind: "end"; readonly counts: Counts };

export function noCounts(): Counts {
  return { applications: 0, sessions: 0, events: 0 };
}
