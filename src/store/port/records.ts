import {
  type ApplicationRecord as ApplicationMessage,
  ApplicationRecordSchema,
  type KeyRecord as KeyMessage,
  KeyRecordSchema,
  type SessionRecord as SessionMessage,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import type { ApplicationType, Grants } from "../../contract/grants.js";
import { createConverter, type Plain } from "../../contract/message-converter.js";

/** Milliseconds for which expired records are stored, to distinguish an expired key from an unknown one. */
export const expiredRetention = 10 * 60_000;

/** The field that the store adds to a record. */
interface Versioned {
  /** Changes with each change of the record, but not with its uses. */
  readonly version: number;
}

export type KeyRecord = Plain<KeyMessage>;

/** The fields of a stored application, as records.proto declares them. */
export type ApplicationFields = Omit<Plain<ApplicationMessage>, "type"> & {
  readonly type: ApplicationType;
};
export type ApplicationRecord = ApplicationFields & Versioned;

/** The fields of a stored session. */
export type SessionFields = Plain<SessionMessage>;
export type SessionRecord = SessionFields & Versioned;

/** A UUID that is not secret, and the hash of the key. */
export type NewKey = Pick<KeyRecord, "id" | "hash">;

/** The fields that an application gets when it is created. Absent ones are empty. */
export type NewApplication = Pick<ApplicationFields, "id" | "tenantId" | "name" | "type"> &
  Grants &
  Partial<Omit<ApplicationFields, SetByStore | keyof Grants>> & { readonly key: NewKey };

type SetByStore =
  | ("keys" | "disabled" | "sessionEpoch" | "authorizationEpoch" | "createdAt")
  | ("modifiedBy" | "modifiedAt" | "lastUsedAt");

/** The fields to replace. Absent fields stay the same, and `null` removes an optional field. */
export type ApplicationChange = {
  readonly [K in Exclude<keyof ApplicationFields, Fixed>]?: undefined extends ApplicationFields[K]
    ? Exclude<ApplicationFields[K], undefined> | null
    : ApplicationFields[K];
} & { readonly modifiedBy: string };

/** The fields that no change replaces, apart from `modifiedBy`, which every change sets. */
type Fixed =
  | ("id" | "tenantId" | "type" | "createdBy" | "createdAt")
  | ("modifiedBy" | "modifiedAt" | "lastUsedAt");

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
  /** Identifies the network of the client to the quota. Not empty. */
  readonly networkHash: Uint8Array;
  /** The limits of unauthorized sessions of its application. Absent for no limit. */
  readonly quota?: UnauthorizedQuota | undefined;
}

export interface UnauthorizedQuota {
  readonly total: number;
  /** The limit for one network. Absent for no limit. */
  readonly perNetwork?: number | undefined;
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
  /** The limit of authorized sessions of the application that opened the session. Absent for no limit. */
  readonly quota?: number | undefined;
}

const completeApplication = createConverter(ApplicationRecordSchema, { withDefaults: true });
const completeSession = createConverter(SessionRecordSchema, { withDefaults: true });
const completeKey = createConverter(KeyRecordSchema, { withDefaults: true });

/** Copies the fields of an application, and adds the defaults of absent ones. */
export function copyApplication(fields: Partial<Plain<ApplicationMessage>>): ApplicationFields {
  return completeApplication(fields) as ApplicationFields;
}

export function copySession(fields: Partial<SessionFields>): SessionFields {
  return completeSession(fields) as SessionFields;
}

export function copyKey(fields: KeyRecord): KeyRecord {
  return completeKey(fields) as KeyRecord;
}

const shareApplication = createConverter(ApplicationRecordSchema, {
  withDefaults: true,
  shareNested: true,
});

/** The fields of a new application, which share the given values. */
export function newApplication(
  { key, ...given }: NewApplication,
  createdAt: number,
): ApplicationFields {
  const { id, hash } = key;
  const keys = [copyKey({ id, hash, createdAt })];
  return shareApplication({ ...given, keys, createdAt }) as ApplicationFields;
}

/** The fields of an application after a change, which share the values that stay the same. */
export function changedApplication(
  current: ApplicationFields,
  change: ApplicationChange,
  modifiedAt: number,
): ApplicationFields {
  const keys = current.keys.map(copyKey);
  const fields = { ...shareApplication(current), keys, ...change, modifiedAt };
  return omitNull(fields) as ApplicationFields;
}

/** Leaves out the fields that a change removes. */
function omitNull(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
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
