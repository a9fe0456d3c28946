import { randomBytes, randomUUID } from "node:crypto";
import type { Grants, RuleRecord } from "../../../src/contract/grants.js";
import { newId } from "../../../src/lib/uuid.js";
import type {
  ApplicationRecord,
  KeyRecord,
  NewApplication,
  NewKey,
  NewSession,
  SessionGrant,
  SessionRecord,
  SessionWithApplication,
} from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";

export const hour = 3_600_000;

export const rule: RuleRecord = {
  description: "Numbers may be seen in part.",
  priority: 1,
  container: "/pci/",
  conditions: [{ attribute: "container", operator: "starts_with", value: "/pci/high/" }],
  transform: "mask",
  permissions: ["token:read", "token:search"],
};

export const grants: Grants = { permissions: ["token:use"], rules: [rule] };

/** Texts that have undone other stores. */
export const unusualTexts = [
  "$gt",
  "$$NOW",
  "__proto__",
  "constructor",
  "a.b",
  "",
  " ",
  "\0",
  '{"$ne":null}',
  "'; --",
  "null",
  "\u00e9",
  "e\u0301",
  "👩‍👩‍👧‍👦 日本語 ﷺ",
  "𝒙".repeat(500),
];

export function aKey(fields: Partial<NewKey> = {}): NewKey {
  return { id: newId(Date.now()), hash: randomBytes(32), ...fields };
}

/** An application to create, as bare as may be. */
export function anApplication(fields: Partial<NewApplication> = {}): NewApplication {
  return {
    id: newId(Date.now()),
    tenantId: randomUUID(),
    name: "shop",
    type: "public",
    key: aKey(),
    permissions: [],
    rules: [],
    ...fields,
  };
}

/** A session of an application to create. */
export function aSession(
  { id: applicationId, tenantId }: Pick<ApplicationRecord, "id" | "tenantId">,
  fields: Partial<NewSession> = {},
): NewSession {
  const [keyHash, nonceHash] = [randomBytes(32), randomBytes(32)];
  const id = newId(Date.now());
  return { id, tenantId, applicationId, keyHash, nonceHash, ttl: hour, ...fields };
}

/** A grant that shows the right nonce. */
export function aGrant(session: NewSession, fields: Partial<SessionGrant> = {}): SessionGrant {
  return {
    sessionId: session.id,
    tenantId: session.tenantId,
    nonceHashes: [session.nonceHash],
    authorizedBy: session.applicationId,
    ...grants,
    ...fields,
  };
}

/** Creates an application and a session of it. */
export async function createWithSession(store: Store, ttl = hour) {
  const application = await store.applications.create(anApplication());
  const session = aSession(application, { ttl });
  const created = must(await store.sessions.create(session));
  return { application, session, created };
}

export function update(store: Store, { tenantId, id }: Pick<ApplicationRecord, "tenantId" | "id">) {
  return store.applications.update(tenantId, id, () => ({ name: "till", modifiedBy: id }));
}

/** Gives an application other keys in place of those it has. */
export function rekey(
  store: Store,
  { tenantId, id }: Pick<ApplicationRecord, "tenantId" | "id">,
  ...keys: NewKey[]
) {
  return store.applications.update(tenantId, id, (_, createdAt) => ({
    keys: keys.map((key) => ({ createdAt, ...key })),
    modifiedBy: id,
  }));
}

/** What an application that was created so is at first, but for its version. */
export function expectedContent({ key, ...given }: NewApplication, createdAt: number) {
  const unsaid = { disabled: false, sessionEpoch: 0, allowedOrigins: [], allowedCidrs: [] };
  return told({ ...unsaid, ...given, keys: [{ ...key, createdAt }], createdAt });
}

/** What an application or session is, of all that its record may tell; as JSON shows it, it may differ by engine. */
export function contentOf(record: ApplicationRecord | SessionRecord | undefined) {
  const names = [
    "id",
    "version",
    "tenantId",
    "applicationId",
    "name",
    "type",
    "disabled",
    "sessionEpoch",
    "epoch",
    "keyHash",
    "nonceHash",
    "permissions",
    "rules",
    "allowedOrigins",
    "allowedCidrs",
    "createdBy",
    "createdAt",
    "modifiedBy",
    "modifiedAt",
    "authorizedBy",
    "authorizedAt",
    "expiresAt",
    "sessionQuota",
    "lastUsedAt",
  ];
  const fields = must(record) as unknown as Record<string, unknown>;
  const keys = (fields.keys as readonly KeyRecord[] | undefined)?.map(contentOfKey);
  return told({ ...Object.fromEntries(names.map((name) => [name, fields[name]])), keys });
}

function contentOfKey({ id, hash, foreign, createdAt, expiresAt, lastUsedAt }: KeyRecord) {
  return told({ id, hash, foreign, createdAt, expiresAt, lastUsedAt });
}

/** What is there of the fields. */
function told(fields: object) {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

export function must<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error("It should be there.");
  }
  return value;
}

export function idsOf(
  records: readonly (ApplicationRecord | SessionRecord | SessionWithApplication)[],
): string[] {
  return records.map((record) => ("session" in record ? record.session : record).id);
}

export function newestFirst(ids: Iterable<string>): string[] {
  return [...ids].sort().reverse();
}

/** Adds so many applications with so many rules that a list of them is long. */
export async function createLarge({ applications }: Store, tenantId: string, count: number) {
  const rules = times(30, (index) => ({ ...rule, priority: index + 1 }));
  await Promise.all(times(count, () => applications.create(anApplication({ tenantId, rules }))));
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
