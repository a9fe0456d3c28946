import type { ApplicationType, Grants, Restrictions } from "../../contract/grants.js";

/** How long what has expired is kept, so that it can be told from what never was, in milliseconds. */
export const expiredRetention = 10 * 60_000;

export interface NewKey {
  /** A UUID that is no secret. */
  readonly id: string;
  readonly hash: Uint8Array;
}

export interface KeyRecord extends NewKey {
  /** Whether it was made elsewhere, so that it does not tell whose it is. */
  readonly foreign?: boolean | undefined;
  readonly createdAt: number;
  /** When it ends by itself. Absent where it does not. One that has ended may still be listed. */
  readonly expiresAt?: number | undefined;
  readonly lastUsedAt?: number | undefined;
}

export interface NewApplication extends Grants, Partial<Restrictions> {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly type: ApplicationType;
  readonly key: NewKey;
  readonly createdBy?: string | undefined;
  readonly expiresAt?: number | undefined;
  readonly sessionQuota?: number | undefined;
}

export interface ApplicationRecord extends Grants, Restrictions {
  readonly id: string;
  readonly tenantId: string;
  readonly name: string;
  readonly type: ApplicationType;
  /** Newest first. */
  readonly keys: readonly KeyRecord[];
  /** Whether its keys and those of its sessions are refused for now. */
  readonly disabled: boolean;
  /** How often its sessions were revoked. */
  readonly sessionEpoch: number;
  /** Differs with each change of the record. */
  readonly version: number;
  readonly createdBy?: string | undefined;
  readonly createdAt: number;
  readonly modifiedBy?: string | undefined;
  readonly modifiedAt?: number | undefined;
  readonly expiresAt?: number | undefined;
  /** How many sessions it may have open at once; absent where the default of the service applies. */
  readonly sessionQuota?: number | undefined;
  /** When one of its keys, or the key of one of its sessions, was last used. */
  readonly lastUsedAt?: number | undefined;
  /** The record in JSON, byte for byte as the REST API shows it, where the engine keeps it so. */
  readonly document?: Buffer | undefined;
}

/** The fields to replace; those left out stay as they are. */
export interface ApplicationChange extends Partial<Grants>, Partial<Restrictions> {
  readonly name?: string;
  readonly keys?: readonly KeyRecord[];
  readonly disabled?: boolean;
  readonly sessionEpoch?: number;
  /** `null` takes away what it was. */
  readonly sessionQuota?: number | null;
  readonly modifiedBy: string;
}

export interface Use {
  readonly applicationId: string;
  /** Absent where it was the key of a session. */
  readonly keyId?: string | undefined;
  readonly at: number;
}

export interface NewSession {
  readonly id: string;
  readonly tenantId: string;
  readonly applicationId: string;
  readonly keyHash: Uint8Array;
  readonly nonceHash: Uint8Array;
  readonly ttl: number;
  /** How many sessions its application may have open at once; absent where there is no limit. */
  readonly quota?: number | undefined;
}

export interface SessionRecord extends Grants {
  readonly id: string;
  /** Differs with each change of the record. */
  readonly version: number;
  readonly tenantId: string;
  readonly applicationId: string;
  /** The {@link ApplicationRecord.sessionEpoch} of its application when it was opened; it is dead under another one. */
  readonly epoch: number;
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
  /** The application that authorized the session. Absent until it is authorized. */
  readonly authorizer?: ApplicationRecord | undefined;
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
