import type { Awaitable } from "../awaitable.js";

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
 * - A session whose application is gone is gone too.
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

  /** The store's clock. */
  now(): Promise<number>;

  /** Resolves when the store answers, and throws where it cannot do its work. */
  ping(): Promise<void>;

  /** Resolves when all that was acknowledged is safe and nothing is held open. */
  close(): Promise<void>;
}

export interface ApplicationStore {
  /** Adds an application, stamped with the moment of its creation. An id that is taken is refused. */
  create(application: NewApplication): Promise<ApplicationRecord>;

  /** Whether there is no application at all. */
  isEmpty(): Promise<boolean>;

  /** Reads an application of any tenant, for authentication. */
  find(id: string): Awaitable<ApplicationRecord | undefined>;

  /** Reads applications as {@link find} does, all at once; each is answered at the place of its id. */
  findMany(ids: readonly string[]): Awaitable<readonly (ApplicationRecord | undefined)[]>;

  /** Reads an application that has expired and is still kept, to tell why its key is refused. */
  findExpired(id: string): Awaitable<ApplicationRecord | undefined>;

  /** Reads applications of a tenant, newest (greatest id) first. */
  list(query: ListQuery): Promise<ApplicationPage>;

  /**
   * Changes an application in one atomic step, stamped with the moment of the
   * change. `change` sees the record as it is when the change takes effect;
   * it may be called again if the record moves under it, and nothing is
   * written if it throws. Answers `undefined` where there is no such
   * application in the tenant.
   */
  update(
    tenantId: string,
    id: string,
    change: (current: ApplicationRecord) => ApplicationChange,
  ): Promise<ApplicationRecord | undefined>;

  /** Deletes an application, and with it the use of its sessions. Answers whether it was there. */
  delete(tenantId: string, id: string): Promise<boolean>;
}

export interface SessionStore {
  /** Adds a session that ends `ttl` milliseconds from now, or answers `undefined` where its application is gone. */
  create(session: NewSession): Promise<SessionRecord | undefined>;

  /** Reads a session together with its application. */
  find(id: string): Awaitable<SessionWithApplication | undefined>;

  /** Reads sessions as {@link find} does, all at once; each is answered at the place of its id. */
  findMany(ids: readonly string[]): Awaitable<readonly (SessionWithApplication | undefined)[]>;

  /** Reads a session that has expired, or whose application has, where both are still kept. */
  findExpired(id: string): Awaitable<SessionWithApplication | undefined>;

  /**
   * Spends the nonce of a session and gives it its grants, in one atomic step:
   * of any number of calls with the same nonce one answers `authorized`.
   * `used` is said only to a caller that shows the right nonce.
   */
  authorize(grant: SessionGrant): Promise<"authorized" | "used" | "unknown">;
}

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

/** How long what has expired is kept, so that it can be told from what never was, in milliseconds. */
export const expiredRetention = 10 * 60_000;

/** Something that makes what was known of a key wrong. */
export interface Change {
  readonly kind: "updated" | "regenerated" | "deleted" | "expired" | "authorized";
  readonly applicationId: string;
  /** Absent where it is about the application. */
  readonly sessionId?: string | undefined;
  /** When it took effect: of an expiry, the moment that was set for it. */
  readonly at: number;
}

export const applicationTypes = ["private", "public", "management"] as const;
export type ApplicationType = (typeof applicationTypes)[number];

export interface ConditionRecord {
  readonly attribute: string;
  readonly operator: string;
  readonly value: string;
}

export interface RuleRecord {
  readonly description?: string | undefined;
  readonly priority: number;
  readonly container?: string | undefined;
  readonly conditions: readonly ConditionRecord[];
  readonly transform: string;
  readonly permissions: readonly string[];
}

/** What a key may do. */
export interface Grants {
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
}

export interface NewApplication extends Grants {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly keyHash: Uint8Array;
  readonly createdBy?: string | undefined;
  readonly expiresAt?: number | undefined;
}

export interface ApplicationRecord extends NewApplication {
  /** Differs with each change of the record. */
  readonly version: number;
  readonly createdAt: number;
  readonly modifiedBy?: string | undefined;
  readonly modifiedAt?: number | undefined;
  /** The record in JSON, byte for byte as the REST API shows it, where the engine keeps it so. */
  readonly document?: Buffer | undefined;
}

/** The fields to replace; those left out stay as they are. */
export interface ApplicationChange extends Partial<Grants> {
  readonly name?: string;
  readonly keyHash?: Uint8Array;
  readonly modifiedBy: string;
}

export interface ListQuery {
  readonly tenantId: string;
  /** Only these ids. */
  readonly ids?: readonly string[] | undefined;
  readonly size: number;
  /** A page by number, counted, or what follows an id. */
  readonly from: { readonly page: number } | { readonly after: string };
}

export interface ApplicationPage {
  readonly items: readonly ApplicationRecord[];
  /** Whether more items follow the last one. */
  readonly more: boolean;
  /** How many items there are in all; only for pages by number. */
  readonly total?: number | undefined;
}

export interface NewSession {
  readonly id: string;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyHash: Uint8Array;
  readonly nonceHash: Uint8Array;
  readonly ttl: number;
}

export interface SessionRecord extends Grants {
  readonly id: string;
  /** Differs with each change of the record. */
  readonly version: number;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyHash: Uint8Array;
  readonly nonceHash: Uint8Array;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** Absent until the session is authorized. */
  readonly authorizedAt?: number | undefined;
  readonly authorizedBy?: string | undefined;
}

export interface SessionWithApplication {
  readonly session: SessionRecord;
  readonly application: ApplicationRecord;
}

export interface SessionGrant extends Grants {
  readonly sessionId: string;
  readonly tenantId: string;
  /** The hashes that the nonce may be stored under. */
  readonly nonceHashes: readonly Uint8Array[];
  readonly authorizedBy: string;
  /** Absent leaves the expiry as it is. */
  readonly expiresAt?: number | undefined;
}

/** The data cannot be reached now; the same call may succeed later. */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
}

/** Tells the time in milliseconds since the epoch. */
export type Clock = () => number;
