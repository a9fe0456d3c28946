import type { ApplicationType } from "../../contract/grants.js";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import type { AnswerStore, Trail } from "./audit.js";
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
 * The port to storage. Engines keep records and know nothing of protocols,
 * permissions or keys: they see ids, hashes and the moments at which things
 * end.
 *
 * What every engine promises:
 * - An acknowledged write is durable, and every later read sees it, from every
 *   process that shares the store.
 * - The store's own clock stamps records and judges expiry, to the
 *   millisecond. What has expired is not there, whether swept or not.
 * - A session is gone with its application and with its authorizer, and where
 *   it was opened before its application's sessions were last revoked.
 * - A record of another tenant is not there.
 *
 * Ids, `createdBy` and its like included, are UUIDs in lower case. Moments are
 * milliseconds since the epoch. What is absent in a record is undefined. A
 * record is read by its properties, never spread: an engine may find out what
 * they are when they are first asked for. A call that cannot reach the data throws {@link StoreUnavailable}.
 */
export interface Store {
  /** Tells these data from all others. It is known to the service only, and shown to nobody. */
  readonly id: string;
  readonly applications: ApplicationStore;
  readonly sessions: SessionStore;
  readonly changes: ChangeFeed;
  readonly events: EventStore;
  readonly answers: AnswerStore;
  /** Absent where only the processes of one machine share the store. */
  readonly rateCounts?: RateCounts;
  readonly transfer: TransferStore;

  /** How its connections are used now; absent where it needs none. */
  readonly connections?: () => ConnectionUse;

  /** The store's clock. */
  now(): MaybePromise<number>;

  /** Resolves when the store answers, and throws where it cannot do its work. */
  ping(): Promise<void>;

  /** Resolves when all that was acknowledged is safe and nothing is held open. */
  close(): Promise<void>;
}

export interface ConnectionUse {
  /** Connections that do something for a call. */
  readonly inUse: number;
  /** Calls that wait for a connection. */
  readonly waiting: number;
}

export interface ApplicationStore {
  /** Adds an application, stamped with the moment of its creation. An id that is taken is refused. */
  create(application: NewApplication, trail?: Trail<ApplicationRecord>): Promise<ApplicationRecord>;

  /** Whether there is no application at all. */
  isEmpty(): Promise<boolean>;

  /** Reads an application of any tenant, for authentication. */
  find(id: string): MaybePromise<ApplicationRecord | undefined>;

  /** Reads applications as {@link find} does, all at once; each is answered at the place of its id. */
  findMany(ids: readonly string[]): MaybePromise<readonly (ApplicationRecord | undefined)[]>;

  /** Reads an application that has expired and is still kept, to tell why its key is refused. */
  findExpired(id: string): MaybePromise<ApplicationRecord | undefined>;

  /**
   * The id of the application that has a foreign key of one of these hashes,
   * be it expired. Where several have it, it is that of the only one that has
   * not expired, and otherwise nobody's.
   */
  findForeign(hashes: readonly Uint8Array[]): MaybePromise<string | undefined>;

  /**
   * Reads applications of a tenant, newest (greatest id) first unless another
   * order is asked for. Reading stops when the signal is given, and its reason
   * is thrown.
   */
  list(query: ListQuery, signal?: AbortSignal): Promise<ApplicationPage>;

  /**
   * Changes an application in one atomic step, stamped with the moment of the
   * change. `change` sees the record as it is when the change takes effect,
   * and the store's time; it may be called again if the record moves under it,
   * and nothing is written if it throws. Answers `undefined` where there is no
   * such application in the tenant. Throws {@link LastManager} where the tenant
   * would be left without an enabled application that can create and update
   * others, however many such changes are made at once with a trail.
   */
  update(
    tenantId: string,
    id: string,
    change: (current: ApplicationRecord, now: number) => ApplicationChange,
    trail?: Trail<ApplicationRecord>,
  ): Promise<ApplicationRecord | undefined>;

  /**
   * Deletes an application, and with it the use of its sessions. `check` sees
   * it as it is when it goes, and nothing is deleted if it throws. Answers
   * whether it was there. Throws {@link LastManager} as {@link update} does.
   */
  delete(
    tenantId: string,
    id: string,
    check?: (current: ApplicationRecord) => void,
    trail?: Trail<ApplicationRecord>,
  ): Promise<boolean>;

  /**
   * Notes when applications and their keys were last used. What is gone is
   * passed over, and so is a use that is older than the one that is known. It
   * is no change of a record: its version stays, and nobody is told.
   */
  noteUses(uses: readonly Use[]): Promise<void>;
}

export interface SessionStore {
  /**
   * Adds a session that ends `ttl` milliseconds from now, or answers `undefined`
   * where its application is gone. Throws {@link SessionQuotaReached} where the
   * application has as many open sessions as the quota allows. Sessions that
   * have expired or were revoked do not count. An engine may exceed the quota by
   * little where several processes open sessions at once, but it refuses none
   * while there are fewer.
   */
  create(session: NewSession, trail?: Trail<SessionRecord>): Promise<SessionRecord | undefined>;

  /** Reads a session together with its application and its authorizer. */
  find(id: string): MaybePromise<SessionWithApplication | undefined>;

  /** Reads sessions as {@link find} does, all at once; each is answered at the place of its id. */
  findMany(ids: readonly string[]): MaybePromise<readonly (SessionWithApplication | undefined)[]>;

  /** Reads a session that has expired, or whose application or authorizer has, where all are still kept. */
  findExpired(id: string): MaybePromise<SessionWithApplication | undefined>;

  /**
   * Spends the nonce of a session and gives it its grants, in one atomic step:
   * of any number of calls with the same nonce one answers `authorized`.
   * `used` is said only to a caller that shows the right nonce.
   */
  authorize(
    grant: SessionGrant,
    trail?: Trail<SessionRecord>,
  ): Promise<"authorized" | "used" | "unknown">;

  /** Reads sessions of a tenant, newest (greatest id) first. Stops as {@link ApplicationStore.list} does. */
  list(query: SessionQuery, signal?: AbortSignal): Promise<SessionPage>;

  /**
   * Ends a session. `check` sees it and its application as they are when it
   * goes, and nothing is deleted if it throws. Answers whether it was there.
   */
  delete(
    tenantId: string,
    id: string,
    check?: (current: SessionWithApplication) => void,
    trail?: Trail<SessionRecord>,
  ): Promise<boolean>;

  /**
   * How many sessions came to their end by themselves since it was last asked,
   * as far as they are still kept: each is told once, to whichever process asks first.
   */
  takeExpired(): MaybePromise<number>;
}

/** What applications are searched by; all that is given must hold. */
export interface ApplicationFilter {
  readonly type?: ApplicationType | undefined;
  readonly disabled?: boolean | undefined;
  /** Only those that hold this permission, directly or by a rule. */
  readonly permission?: string | undefined;
  /** Only those whose name begins so, in upper or lower case. */
  readonly namePrefix?: string | undefined;
  readonly expiresBefore?: number | undefined;
  /** Only those that were last used before this moment, or made before it and never used. */
  readonly lastUsedBefore?: number | undefined;
}

/**
 * The order of a list: the newest first; by name; those that end first, and
 * only those that end; those that have not been used for the longest time.
 */
export type ListOrder = "newest" | "name" | "expires_at" | "last_used_at";

export interface ListQuery {
  readonly tenantId: string;
  /** Only these ids. */
  readonly ids?: readonly string[] | undefined;
  readonly filter?: ApplicationFilter | undefined;
  /** The newest first where it is not given. */
  readonly order?: ListOrder | undefined;
  readonly size: number;
  /** A page by number, counted, or what follows an item. */
  readonly from: { readonly page: number } | Place;
}

/** Where an item stands in a list, whether it is still there or not. */
export interface Place {
  /** The id of the item. */
  readonly after: string;
  /** What decides its place before its id, in other orders than that of age. */
  readonly value?: string | number | undefined;
}

export interface ApplicationPage {
  readonly items: readonly ApplicationRecord[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
  /** How many items there are in all; only for pages by number. */
  readonly total?: number | undefined;
}

export interface SessionQuery {
  readonly tenantId: string;
  readonly applicationId?: string | undefined;
  /** Only those that this application authorized. */
  readonly authorizedBy?: string | undefined;
  /** Only those that are authorized, or only those that are not. */
  readonly authorized?: boolean | undefined;
  readonly size: number;
  /** Only those that follow the session with this id. */
  readonly after?: string | undefined;
}

export interface SessionPage {
  readonly items: readonly SessionWithApplication[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
}

/** Tells the time in milliseconds since the epoch. */
export type Clock = () => number;
