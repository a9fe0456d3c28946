import { randomBytes, randomUUID } from "node:crypto";
import {
  ApplicationRecordSchema,
  SessionRecordSchema,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import type { Grants, RuleRecord } from "../../../src/contract/grants.js";
import { createConverter } from "../../../src/contract/message-converter.js";
import { newId } from "../../../src/lib/uuid.js";
import {
  type ApplicationRecord,
  type NewApplication,
  type NewKey,
  newApplication,
  type SessionRecord,
  type SessionWithApplication,
} from "../../../src/store/port/records.js";
import { audit } from "../../support/store/audit.js";
import type {
  ChangeContext,
  OperableStore,
  SessionToAuthorize,
  SessionToOpen,
} from "../../support/store/operations.js";

export const hour = 3_600_000;

export const rule: RuleRecord = {
  description: "Mask card numbers.",
  priority: 1,
  container: "/pci/",
  conditions: [{ attribute: "container", operator: "starts_with", value: "/pci/high/" }],
  transform: "mask",
  permissions: ["token:read", "token:search"],
};

export const grants: Grants = { permissions: ["token:use"], rules: [rule] };

/** Texts that commonly break stores. */
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

/** A new application with only the required fields. */
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

/** A new session of an application. */
export function aSession(
  { id: applicationId, tenantId }: Pick<ApplicationRecord, "id" | "tenantId">,
  fields: Partial<SessionToOpen> = {},
): SessionToOpen {
  const [keyHash, nonceHash] = [randomBytes(32), randomBytes(32)];
  const id = newId(Date.now());
  const networkHash = randomBytes(8);
  return { id, tenantId, applicationId, keyHash, nonceHash, ttl: hour, networkHash, ...fields };
}

/** A grant with the correct nonce. */
export function aGrant(
  session: SessionToOpen,
  fields: Partial<SessionToAuthorize> = {},
): SessionToAuthorize {
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
export async function createWithSession(store: OperableStore, ttl = hour) {
  const application = await store.applications.create(anApplication(), audit.created);
  const session = aSession(application, { ttl });
  const created = must(await store.sessions.create(session));
  return { application, session, created };
}

export function update(
  store: OperableStore,
  { tenantId, id }: Pick<ApplicationRecord, "tenantId" | "id">,
  context: ChangeContext<ApplicationRecord> = audit.updated,
) {
  return store.applications.update(tenantId, id, () => ({ name: "till", modifiedBy: id }), context);
}

/** Sets or removes the expiry of an application. */
export function updateExpiry(
  store: OperableStore,
  { tenantId, id }: Pick<ApplicationRecord, "tenantId" | "id">,
  expiresAt: number | null,
) {
  return store.applications.update(
    tenantId,
    id,
    () => ({ expiresAt, modifiedBy: id }),
    audit.updated,
  );
}

/** Replaces the keys of an application. */
export function replaceKeys(
  store: OperableStore,
  { tenantId, id }: Pick<ApplicationRecord, "tenantId" | "id">,
  ...keys: NewKey[]
) {
  return store.applications.update(
    tenantId,
    id,
    (_, createdAt) => ({
      keys: keys.map((key) => ({ createdAt, ...key })),
      modifiedBy: id,
    }),
    audit.regenerated,
  );
}

/** The content of a new application, without its version. */
export function expectedContent(application: NewApplication, createdAt: number) {
  return newApplication(application, createdAt);
}

const copyContent = createConverter(ApplicationRecordSchema, {});
const copySessionContent = createConverter(SessionRecordSchema, {});

/** The fields of a record and its version as a plain object, since the classes of records differ by engine. */
export function contentOf(
  record: ApplicationRecord | SessionRecord | undefined,
): Record<string, unknown> {
  const found = must(record);
  const copy = "applicationId" in found ? copySessionContent : copyContent;
  return { ...copy(found), version: found.version };
}

export function must<T>(value: T | undefined): T {
  if (value === undefined) {
    throw new Error("The value is undefined.");
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

/** Creates applications with many rules, so that a list of them is long. */
export async function createLarge(
  { applications }: OperableStore,
  tenantId: string,
  count: number,
) {
  const rules = times(30, (index) => ({ ...rule, priority: index + 1 }));
  await Promise.all(
    times(count, () => applications.create(anApplication({ tenantId, rules }), audit.created)),
  );
}

export function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
