import type { EventRecord } from "../store/port/events.js";
import type { ImportedApplication, ImportedSession } from "../store/port/transfer.js";

/** The version of the file format. */
export const formatNumber = 1;

/** The kinds of records in the order of a file: a session comes after its application. */
export const recordKinds = ["application", "session", "event"] as const;
export type RecordKind = (typeof recordKinds)[number];

export type Counts = Record<`${RecordKind}s`, number>;

/** The first line of a file. Only the format is required, so that files can be written by hand. */
export interface Header {
  readonly format: number;
  readonly exportedAt?: number | undefined;
  /** The kind of store. */
  readonly store?: string | undefined;
  /** Identifies the exported data. */
  readonly source?: string | undefined;
  /** Whether the file has events. Default: true. */
  readonly events?: boolean | undefined;
  /** See checks.ts. */
  readonly pepperChecks?: readonly string[] | undefined;
}

/** A record of any kind. */
export type Item =
  | { readonly kind: "application"; readonly record: ImportedApplication }
  | { readonly kind: "session"; readonly record: ImportedSession }
  | { readonly kind: "event"; readonly record: EventRecord };

/** A line after the first. */
export type Line = Item | { readonly kind: "end"; readonly counts: Counts };

export function noCounts(): Counts {
  return { applications: 0, sessions: 0, events: 0 };
}
