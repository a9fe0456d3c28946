import type { ApplicationType, Grants, Restrictions } from "../../contract/grants.js";
/** Milliseconds for which expired records are stored, to distinguish an expired key from an unknown one. */
export const expiredRetention = 10 * 60_000;

export interface NewKey {
  /** A UUID. Not secret. */
  readonly id: string;
  readonly hash: Uint8Array;
}

export interface KeyRecord extends NewKey {
  /** Whether it was created by another system: the key then does not contain the application id. */
  readonly foreign?: boolean | undefined;
  readonly createdAt: number;
  /** Absent if it does not expire. An expired key may still be listed. */
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
  /** Whether its keys and those of its sessions are refused until it is enabled again. */
  readonly disabled: boolean;
  /** Counts revocations of its sessions. */
  readonly sessionEpoch: number;
  /** Changes with each change of the record. */
  readonly version: number;
  readonly createdBy?: string | undefined;
  readonly createdAt: number;
  readonly modifiedBy?: string | undefined;
  readonly modifiedAt?: number | undefined;
  readonly expiresAt?: number | undefined;
  /** The limit of open sessions. Absent for the default of the service. */
  readonly sessionQuota?: number | undefined;
  /** When one of its keys, or the key of one of its sessions, was last used. */
  readonly lastUsedAt?: number | undefined;
  /** The record as the exact JSON of the REST API, if the engine stores it. */
  readonly document?: Buffer | undefined;
}

/** The fields to replace. Absent fields stay the same. */
export interface ApplicationChange extends Partial<Grants>, Partial<Restrictions> {
  readonly name?: string;
  readonly keys?: readonly KeyRecord[];
  readonly disabled?: boolean;
  readonly sessionEpoch?: number;
  /** `null` removes the quota. */
  readonly sessionQuota?: number | null;
  readonly modifiedBy: string;
}

export interface KeyUse {
  readonly applicationId: string;
  /** Absent for a session key. */
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
  /** The limit of open sessions of its application. Absent for no limit. */
  readonly quota?: number | undefined;
}

export interface SessionRecord extends Grants {
  readonly id: string;
  /** Changes with each change of the record. */
  readonly version: number;
  readonly tenantId: string;
  readonly applicationId: string;
  /** The {@link ApplicationRecord.sessionEpoch} when it was created. The session is revoked when they differ. */
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
  /** The possible hashes of the nonce, one for each pepper. */
  readonly nonceHashes: readonly Uint8Array[];
  readonly authorizedBy: string;
  /** Absent keeps the expiry. */
  readonly expiresAt?: number | undefined;
}

/** Whether a record exists and has not expired. */
export function isUnexpired<R extends { readonly expiresAt?: number | undefined }>(
  record: R | undefined,
  now: number,
): record is R {
  if (record === undefined) {
    return false;
  }
  const { expiresAt } = record;
  return expiresAt === undefined || now < expiresAt;
}

/**
 * Marks a response that depends only on one version of a record and its last
 * use. The value is that record.
 */
export const sourceRecord = Symbol("sourceRecord");

/** A response that may be marked. Responses of the same version and last use are equal. */
export interface HasSourceRecord {
  readonly [sourceRecord]?: {
    readonly id: string;
    readonly version: number;
    readonly lastUsedAt?: number | undefined;
    /** The response as REST JSON, if it is stored with the record. */
    readonly document?: Buffer | undefined;
  };
}
