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

export interface NewSession
  extends Pick<
    SessionFields,
    "id" | "tenantId" | "applicationId" | "keyHash" | "nonceHash" | "networkHash"
  > {
  readonly ttl: number;
}

export interface SessionWithApplication {
  readonly session: SessionRecord;
  readonly application: ApplicationRecord;
  /** The application that authorized the session. Absent until it is authorized. */
  readonly authorizer?: ApplicationRecord | undefined;
}

export interface SessionGrant extends Grants {
  readonly authorizer: Pick<ApplicationRecord, "id" | "authorizationEpoch">;
  /** Absent keeps the expiry. */
  readonly expiresAt?: number | undefined;
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

/** The version of a record after a change. A record that is deleted and imported again must not reuse a version. */
export function nextVersion(before: { readonly version: number } | undefined, now: number): number {
  return before ? before.version + 1 : now;
}

/** A new application, which shares the given values. */
export function newApplication(
  { key, ...given }: NewApplication,
  createdAt: number,
): ApplicationRecord {
  const { id, hash } = key;
  const keys = [copyKey({ id, hash, createdAt })];
  const fields = shareApplication({ ...given, keys, createdAt }) as ApplicationFields;
  return { ...fields, version: nextVersion(undefined, createdAt) };
}

/** An application after a change, which shares the values that stay the same. */
export function changedApplication(
  current: ApplicationRecord,
  change: ApplicationChange,
  modifiedAt: number,
): ApplicationRecord {
  const fields = omitNull({ ...shareApplication(current), ...change, modifiedAt });
  return { ...(fields as ApplicationFields), version: nextVersion(current, modifiedAt) };
}

/** A new session, which expires after `ttl` milliseconds. */
export function newSession(
  { ttl, ...given }: NewSession,
  epoch: number,
  createdAt: number,
): SessionRecord {
  const fields = { ...given, epoch, createdAt, expiresAt: createdAt + ttl };
  return { ...copySession(fields), version: nextVersion(undefined, createdAt) };
}

/** A session after its nonce was spent. */
export function authorizedSession(
  current: SessionRecord,
  { authorizer, ...granted }: SessionGrant,
  authorizedAt: number,
): SessionRecord {
  return {
    ...copySession(current),
    ...granted,
    expiresAt: granted.expiresAt ?? current.expiresAt,
    authorizedAt,
    authorizedBy: authorizer.id,
    authorizationEpoch: authorizer.authorizationEpoch,
    networkHash: new Uint8Array(),
    version: nextVersion(current, authorizedAt),
  };
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
