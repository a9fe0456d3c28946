import type { MaybePromise } from "../../lib/async.js";
import type { ApplicationStore } from "./applications.js";
import type { SessionWithApplication } from "./records.js";

export interface SessionStore {
  /** Finds a session with its application and its authorizer. */
  find(id: string): MaybePromise<SessionWithApplication | undefined>;

  /** Finds several sessions. The results are in the order of the ids. */
  findMany(ids: readonly string[]): MaybePromise<readonly (SessionWithApplication | undefined)[]>;

  /** Finds a session that has expired itself or with its application or authorizer, if all are still stored. */
  findExpired(id: string): MaybePromise<SessionWithApplication | undefined>;

  /** Lists sessions of a tenant, newest (greatest id) first. Aborts like {@link ApplicationStore.list}. */
  list(query: SessionQuery, signal?: AbortSignal): Promise<SessionPage>;

  /** Counts the open sessions among the newest `limit` that match. Aborts like {@link ApplicationStore.list}. */
  count(filter: SessionFilter, limit: number, signal?: AbortSignal): Promise<SessionCount>;

  /**
   * Returns how many sessions expired since the last call. Each session is
   * counted once, by one process.
   */
  drainExpiredCount(): MaybePromise<number>;
}

/** All given conditions must match. */
export interface SessionFilter {
  readonly tenantId: string;
  readonly applicationId?: string | undefined;
  /** The id of the application that authorized the session. */
  readonly authorizedBy?: string | undefined;
  readonly authorized?: boolean | undefined;
}

export interface SessionQuery extends SessionFilter {
  readonly size: number;
  /** The id of the last session of the previous page. */
  readonly after?: string | undefined;
}

export interface SessionPage {
  /** Fewer than requested if they are large. */
  readonly items: readonly SessionWithApplication[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
}

export interface SessionCount {
  readonly open: number;
  /** Whether no more sessions match, open or not, than were read. */
  readonly isComplete: boolean;
}
