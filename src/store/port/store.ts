import type { ApplicationType } from "../../contract/grants.js";
import type { MaybePromise } from "../../lib/async.js";
import type { ChangeContext, ResponseStore } from "./audit.js";
import type { ChangeFeed } from "./changes.js";
import { SessionQuotaReached, StoreUnavailable } from "./errors.js";
import type { EventStore } from "./events.js";
import type { RateCounts } from "./rate-counts.js";
import type {
  ApplicationChange,
  ApplicationRecord,
  NewApplication,
  NewSession,
  SessionGrant,
  SessionRecord,
  SessionWithApplication,
  Use,
} from "./records.js";
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
 *   the sessions of its application are revoked.
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
  readonly changes: ChangeFeed;
  readonly events: EventStore;
  readonly answers: ResponseStore;
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

export interface ApplicationStore {
  /** Adds an application. Throws if the id exists. */
  create(
    application: NewApplication,
    trail?: ChangeContext<ApplicationRecord>,
  ): Promise<ApplicationRecord>;

  /** Whether the store has no application. */
  isEmpty(): Promise<boolean>;

  /** Finds an application of any tenant, for authentication. */
  find(id: string): MaybePromise<ApplicationRecord | undefined>;

  /** Finds several applications. The results are in the order of the ids. */
  findMany(ids: readonly string[]): MaybePromise<readonly (ApplicationRecord | undefined)[]>;

  /** Finds an expired application that is still stored, to explain why its key is refused. */
  findExpired(id: string): MaybePromise<ApplicationRecord | undefined>;

  /**
   * Finds the id of the application that has a foreign key with one of these
   * hashes, expired or not. If several have it, returns the only unexpired one,
   * if any.
   */
  findForeign(hashes: readonly Uint8Array[]): MaybePromise<string | undefined>;

  /**
   * Lists applications of a tenant, by default newest (greatest id) first.
   * Throws the reason of the signal when it aborts.
   */
  list(query: ListQuery, signal?: AbortSignal): Promise<ApplicationPage>;

  /**
   * Changes an application in one atomic step. `change` gets the current record
   * and the store's time. It may be called again on a conflict, and nothing is
   * written if it throws. Returns `undefined` if the tenant has no such
   * application. Throws {@link LastManager} if the tenant would be left without
   * an enabled application that can create and update others. With an audit
   * context, this also holds for concurrent changes.
   */
  update(
    tenantId: string,
    id: string,
    change: (current: ApplicationRecord, now: number) => ApplicationChange,
    trail?: ChangeContext<ApplicationRecord>,
  ): Promise<ApplicationRecord | undefined>;

  /**
   * Deletes an application, which revokes its sessions. `check` gets the current
   * record, and nothing is deleted if it throws. Returns whether the application
   * existed. Throws {@link LastManager} like {@link update}.
   */
  delete(
    tenantId: string,
    id: string,
    check?: (current: ApplicationRecord) => void,
    trail?: ChangeContext<ApplicationRecord>,
  ): Promise<boolean>;

  /**
   * Records when applications and their keys were last used. Ignores missing
   * applications and uses that are older than the stored one. The version of the
   * record stays the same, and no change is reported.
   */
  noteUses(uses: readonly Use[]): Promise<void>;
}

export interface SessionStore {
  /**
   * Adds a session that expires in `ttl` milliseconds, or returns `undefined` if
   * its application does not exist. Throws {@link SessionQuotaReached} if the
   * application has reached its quota. Expired and revoked sessions do not
   * count. Concurrent processes may exceed the quota slightly, but a session
   * below the quota is never refused.
   */
  create(
    session: NewSession,
    trail?: ChangeContext<SessionRecord>,
  ): Promise<SessionRecord | undefined>;

  /** Finds a session with its application and its authorizer. */
  find(id: string): MaybePromise<SessionWithApplication | undefined>;

  /** Finds several sessions. The results are in the order of the ids. */
  findMany(ids: readonly string[]): MaybePromise<readonly (SessionWithApplication | undefined)[]>;

  /** Finds a session that has expired itself or with its application or authorizer, if all are still stored. */
  findExpired(id: string): MaybePromise<SessionWithApplication | undefined>;

  /**
   * Spends the nonce of a session and sets its grants in one atomic step. Of
   * concurrent calls with the same nonce, exactly one returns `authorized`.
   * `used` is returned only for the correct nonce.
   */
  authorize(
    grant: SessionGrant,
    trail?: ChangeContext<SessionRecord>,
  ): Promise<"authorized" | "used" | "unknown">;

  /** Lists sessions of a tenant, newest (greatest id) first. Aborts like {@link ApplicationStore.list}. */
  list(query: SessionQuery, signal?: AbortSignal): Promise<SessionPage>;

  /**
   * Deletes a session. `check` gets the current records, and nothing is deleted
   * if it throws. Returns whether the session existed.
   */
  delete(
    tenantId: string,
    id: string,
    check?: (current: SessionWithApplication) => void,
    trail?: ChangeContext<SessionRecord>,
  ): Promise<boolean>;

  /**
   * Returns how many sessions expired since the last call. Each session is
   * counted once, by one process.
   */
  takeExpired(): MaybePromise<number>;
}

/** All given conditions must match. */
export interface ApplicationFilter {
  readonly type?: ApplicationType | undefined;
  readonly disabled?: boolean | undefined;
  /** Held directly or by a rule. */
  readonly permission?: string | undefined;
  /** Case-insensitive. */
  readonly namePrefix?: string | undefined;
  readonly expiresBefore?: number | undefined;
  /** Last used before this time, or created before it and never used. */
  readonly lastUsedBefore?: number | undefined;
}

/**
 * The order of a list: newest first; by name; by expiry, without applications
 * that do not expire; by last use, longest unused first.
 */
export type ListOrder = "newest" | "name" | "expires_at" | "last_used_at";

export interface ListQuery {
  readonly tenantId: string;
  /** Lists only these ids. */
  readonly ids?: readonly string[] | undefined;
  readonly filter?: ApplicationFilter | undefined;
  /** Default: `newest`. */
  readonly order?: ListOrder | undefined;
  readonly size: number;
  /** A page by number, with a total, or the items after a place. */
  readonly from: { readonly page: number } | Place;
}

/** The position of an item in a list. The item need not exist any more. */
export interface Place {
  /** The id of the item. */
  readonly after: string;
  /** The sort value of the item, in orders other than `newest`. */
  readonly value?: string | number | undefined;
}

export interface ApplicationPage {
  readonly items: readonly ApplicationRecord[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
  /** The number of all items. Only for pages by number. */
  readonly total?: number | undefined;
}

export interface SessionQuery {
  readonly tenantId: string;
  readonly applicationId?: string | undefined;
  /** The id of the application that authorized the session. */
  readonly authorizedBy?: string | undefined;
  readonly authorized?: boolean | undefined;
  readonly size: number;
  /** The id of the last session of the previous page. */
  readonly after?: string | undefined;
}

export interface SessionPage {
  readonly items: readonly SessionWithApplication[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
}

/** Returns the time in milliseconds since the epoch. */
export type Clock = () => number;
