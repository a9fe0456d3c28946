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
 * milliseconds since the epoch. What is absent in a record has no property.
 * A call that cannot reach the data throws {@link StoreUnavailable}.
 */
export interface Store {
  readonly applications: ApplicationStore;
  readonly sessions: SessionStore;

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
  find(id: string): Promise<ApplicationRecord | undefined>;

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
  find(id: string): Promise<SessionWithApplication | undefined>;

  /**
   * Spends the nonce of a session and gives it its grants, in one atomic step:
   * of any number of calls with the same nonce one answers `authorized`.
   * `used` is said only to a caller that shows the right nonce.
   */
  authorize(grant: SessionGrant): Promise<"authorized" | "used" | "unknown">;
}

export type ApplicationType = "private" | "public" | "management";

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
  readonly createdAt: number;
  readonly modifiedBy?: string | undefined;
  readonly modifiedAt?: number | undefined;
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
