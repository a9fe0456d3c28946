export interface ChangeFeed {
  /**
   * Follows what happens to the credentials of a tenant, from a position or
   * from when it is first asked for a batch. Answers one at once, then one
   * with each change, and one without changes where none come for `beat`
   * milliseconds.
   *
   * A change is told after it took effect and at least once. Where some may
   * have been missed, because the position is too old or the reader too slow,
   * the next batch says so. An expiry is told within seconds of its moment,
   * not of the sweep. What ends an application is not told again of each of
   * its sessions. Ends when the signal is given.
   */
  follow(options: FollowOptions): AsyncIterable<ChangeBatch>;
}

export interface FollowOptions {
  readonly tenantId: string;
  /** The position of an earlier batch, of these data. */
  readonly after?: string | undefined;
  readonly beat: number;
  readonly signal: AbortSignal;
}

export interface ChangeBatch {
  /** In their order, at most {@link largestBatch}. */
  readonly changes: readonly Change[];
  /** Whether changes before these may be missing: what was known before this batch is to be forgotten. */
  readonly missed: boolean;
  /** What to follow from after this batch. */
  readonly position: string;
  /**
   * The moment up to which nothing is missing, as `performance.now()` tells
   * time, and never before the feed was first asked. Absent where more follows
   * at once.
   */
  readonly completeUntil?: number | undefined;
}

/** How many changes a batch may hold. */
export const largestBatch = 1_000;

/** How long changes are kept for those that come back, in milliseconds. */
export const changeRetention = 10 * 60_000;

/** Something that makes what was known of a key wrong. */
export interface Change {
  readonly kind: "updated" | "regenerated" | "deleted" | "expired" | "authorized";
  readonly applicationId: string;
  /** Absent where it is about the application. */
  readonly sessionId?: string | undefined;
  /** When it took effect: of an expiry, the moment that was set for it. */
  readonly at: number;
}
