import type { Rate } from "../../config/parsers.js";
import type { MaybePromise } from "../../lib/async.js";
import type { ApplicationStore } from "./applications.js";
import type { MakeChange, ResponseStore } from "./change.js";
import type { ChangeFeed } from "./changes.js";
import { StoreUnavailable } from "./errors.js";
import type { EventStore } from "./events.js";
import type { SessionStore } from "./sessions.js";
import type { TransferStore } from "./transfer.js";

/**
 * The storage port. Engines store records. They do not depend on protocols,
 * permissions or keys, only on ids, hashes and times.
 *
 * Every engine guarantees:
 * - An acknowledged write is durable, and visible to every later read of every
 *   process that shares the store.
 * - The store's own clock sets timestamps and decides expiry, to the
 *   millisecond. Expired records are not returned, whether swept or not.
 * - A session is revoked with its application, with its authorizer, and when
 *   the sessions of one of them are revoked.
 * - Records of other tenants are not returned.
 *
 * Ids, including `createdBy` and the like, are UUIDs in lower case. Times are
 * milliseconds since the epoch. Absent fields are undefined. Read records by
 * property and never spread them: engines may decode properties lazily. A call
 * that cannot reach the data throws {@link StoreUnavailable}.
 */
export interface Store {
  /** Identifies the data. Internal, never returned to clients. */
  readonly id: string;
  readonly applications: ApplicationStore;
  readonly sessions: SessionStore;
  readonly change: MakeChange;
  readonly changes: ChangeFeed;
  readonly events: EventStore;
  readonly responses: ResponseStore;
  /** Absent if only processes of one machine share the store. */
  readonly rateCounts?: RateCounts;
  readonly transfer: TransferStore;

  /** Current use of the connection pool, if there is one. */
  readonly connections?: () => ConnectionUse;

  /** The store's clock. */
  now(): MaybePromise<number>;

  /** Checks that the store can read and write. */
  ping(): Promise<void>;

  /** Closes the store. Acknowledged writes are safe. */
  close(): Promise<void>;
}

export interface ConnectionUse {
  readonly inUse: number;
  /** Calls that wait for a connection. */
  readonly waiting: number;
}

/** The token buckets of rate limits, shared by all processes of a store. */
export interface RateCounts {
  /**
   * Takes up to `max` tokens from a bucket in one atomic step, or none if it
   * holds fewer than `min` (default 1). A new bucket is full. It is refilled
   * by the store's clock, so that the clocks of processes may differ. A failure
   * of the store may undo the latest draws.
   */
  draw(name: string, rate: Rate, max: number, min?: number): Promise<TakenTokens>;
}

export interface TakenTokens {
  readonly tokens: number;
  /** Milliseconds until the next token, or until `min` tokens if there were too few. */
  readonly wait: number;
}

/** Returns the time in milliseconds since the epoch. */
export type Clock = () => number;

/**
 * Stored bytes per page. Decoded they take several times as much memory, and
 * gRPC clients accept messages of 4 MB.
 */
export const maxPageBytes = 1024 * 1024;

/** Limits the size of one page. An item that does not fit is on the next page. */
export interface PageBudget {
  /** Whether an item still fits. The first always does. */
  tryAdd(size: number): boolean;
}

export function createPageBudget(): PageBudget {
  let used = 0;

  return {
    tryAdd(size) {
      const isFirst = used === 0;
      used += size;
      return isFirst || used <= maxPageBytes;
    },
  };
}
