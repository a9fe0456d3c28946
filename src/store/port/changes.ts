import type { EventRecord, FollowOptions } from "./events.js";

/** The credential changes of a tenant: the events of its audit log that change credentials, and expirations. */
export interface ChangeFeed {
  /**
   * Follows changes of the credentials of a tenant, from a position or from the
   * first read. Yields a batch at once, then one with each change, and an empty
   * one after `heartbeat` milliseconds without changes.
   *
   * Each change is reported at least once, after it took effect. If changes may
   * be missing, because the position is too old or the reader too slow, the next
   * batch is marked `missed`. An expiry is reported within seconds. The removal
   * of an application is not repeated for each of its sessions. Returns when the
   * signal aborts.
   */
  follow(options: FollowOptions): AsyncIterable<ChangeBatch>;
}

export interface ChangeBatch {
  /** In order, at most {@link maxChangeBatch}. */
  readonly changes: readonly Change[];
  /** Whether earlier changes may be missing: drop everything that was cached before this batch. */
  readonly missed: boolean;
  /** Where to continue after this batch. */
  readonly position: string;
  /**
   * The time, by `performance.now()`, up to which nothing is missing, and never
   * before the first read. Absent if more follows at once.
   */
  readonly completeUntil?: number | undefined;
}

export const maxChangeBatch = 1_000;

/** Milliseconds for which a reader can continue from a position after it disconnected. */
export const changeRetention = 10 * 60_000;

/** A change that invalidates cached state of a credential. */
export interface Change {
  readonly kind: "updated" | "regenerated" | "deleted" | "expired" | "authorized";
  readonly applicationId: string;
  /** Absent for a change of the application. */
  readonly sessionId?: string | undefined;
  /** When it took effect. For an expiry, the time that was set. */
  readonly at: number;
}

const kindsOfChange: Readonly<Record<string, Change["kind"]>> = {
  "application.updated": "updated",
  "application.disabled": "updated",
  "application.enabled": "updated",
  "application.sessions_revoked": "updated",
  "application.imported": "updated",
  "application.deleted": "deleted",
  "key.regenerated": "regenerated",
  "key.deleted": "regenerated",
  "key.revoked": "regenerated",
  "session.authorized": "authorized",
  "session.imported": "updated",
  "session.deleted": "deleted",
};

/** The credential change that an event of the audit log records, if any. Expirations are found by time. */
export function changeOf({ kind, outcome, target, at }: EventRecord): Change | undefined {
  const kindOfChange = kindsOfChange[kind];
  const { applicationId, sessionId } = target;
  if (outcome !== "success" || kindOfChange === undefined || applicationId === undefined) {
    return undefined;
  }
  return { kind: kindOfChange, applicationId, ...(sessionId !== undefined && { sessionId }), at };
}
