import { randomUUID } from "node:crypto";
import { createKeyring, generateKey } from "../../../src/auth/keys.js";
import { type KeyType, keyTypeOf } from "../../../src/contract/key-text.js";
import { newId } from "../../../src/lib/uuid.js";
import type { EventRecord } from "../../../src/store/port/events.js";
import type {
  ApplicationFields,
  ApplicationRecord,
  SessionFields,
  SessionRecord,
} from "../../../src/store/port/records.js";
import type { Clock } from "../../../src/store/port/store.js";
import type { ImportOptions, ImportOutcome } from "../../../src/store/port/transfer.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { aFullEvent, anEvent } from "./event-fixtures.js";
import { aGrant, anApplication, aSession, contentOf, grants, hour, must } from "./fixtures.js";

/** The pepper of the keys in seeded stores. */
export const pepper = "a pepper of these tests";
export const keyring = createKeyring([pepper]);

/** All records of a store. */
export interface StoreContents {
  readonly applications: readonly ApplicationRecord[];
  readonly sessions: readonly SessionRecord[];
  readonly events: readonly EventRecord[];
}

interface ImportData {
  readonly applications?: readonly ApplicationFields[];
  readonly sessions?: readonly SessionFields[];
  readonly events?: readonly EventRecord[];
}

export function anImportedApplication(fields: Partial<ApplicationFields> = {}): ApplicationFields {
  const { key, ...given } = anApplication();
  const createdAt = Date.UTC(2026, 0);
  return {
    ...given,
    keys: [{ ...key, createdAt }],
    disabled: false,
    sessionEpoch: 0,
    authorizationEpoch: 0,
    allowedOrigins: [],
    allowedCidrs: [],
    metadata: {},
    createdAt,
    ...fields,
  };
}

export function anImportedSession(
  { id: applicationId, tenantId, sessionEpoch }: ApplicationFields,
  fields: Partial<SessionFields> = {},
): SessionFields {
  const { id, keyHash, nonceHash } = aSession({ id: applicationId, tenantId });
  const times = { createdAt: Date.UTC(2026, 0), expiresAt: Date.UTC(2200, 0) };
  const grants = { permissions: [], rules: [] };
  const ids = { id, tenantId, applicationId };
  const epochs = { epoch: sessionEpoch, authorizationEpoch: 0, networkHash: new Uint8Array() };
  return { ...ids, ...epochs, keyHash, nonceHash, ...grants, ...times, ...fields };
}

/** Exports all records of a store, in small pages. */
export async function exportAll({ transfer }: OperableStore, limit = 2): Promise<StoreContents> {
  async function readPages<R, P>(
    read: (after: P | undefined, limit: number) => Promise<readonly R[]>,
    positionOf: (record: R) => P,
  ): Promise<R[]> {
    const records: R[] = [];
    for (;;) {
      const last = records.at(-1);
      const page = await read(last && positionOf(last), limit);
      if (page.length === 0) {
        return records;
      }
      records.push(...page);
    }
  }
  return {
    applications: await readPages(transfer.exportApplications, ({ id }) => id),
    sessions: await readPages(transfer.exportSessions, ({ id }) => id),
    events: await readPages(transfer.exportEvents, (event) => event),
  };
}

export async function importAll(
  { transfer }: OperableStore,
  { applications, sessions, events }: ImportData,
  options: Partial<ImportOptions> = {},
): Promise<Record<keyof StoreContents, readonly ImportOutcome[]>> {
  const allOptions = { replace: false, dryRun: false, ...options };
  return {
    applications: await transfer.importApplications(applications ?? [], allOptions),
    sessions: await transfer.importSessions(sessions ?? [], allOptions),
    events: await transfer.importEvents(events ?? [], allOptions),
  };
}

/** Sorts records by id and removes their versions, to compare stores. */
export function normalize({ applications, sessions, events }: StoreContents) {
  const unversioned = (record: ApplicationRecord | SessionRecord) => {
    const { version, ...content } = contentOf(record);
    return { ...content, ...hexHashes(content), id: record.id };
  };
  const byId = (one: { id: string }, other: { id: string }) => (one.id < other.id ? -1 : 1);
  return {
    applications: applications.map(unversioned).sort(byId),
    sessions: sessions.map(unversioned).sort(byId),
    events: [...events].sort(byId),
  };
}

/** Engines return bytes as different classes. */
function hexHashes({ keys, keyHash, nonceHash }: Record<string, unknown>) {
  const hexes = [keyHash, nonceHash].map((hash) => hash && toHex(hash as Uint8Array));
  const keysWithHex = (keys as { hash: Uint8Array }[] | undefined)?.map((key) => ({
    ...key,
    hash: toHex(key.hash),
  }));
  return { keys: keysWithHex, keyHash: hexes[0], nonceHash: hexes[1] };
}

const toHex = (hash: Uint8Array) => Buffer.from(hash).toString("hex");

/** Adds records of every kind to a store, and returns the working keys. */
export async function seedStore(store: OperableStore, clock: Clock): Promise<string[]> {
  const keys: string[] = [];
  const tenantId = randomUUID();

  function newKey(type: KeyType, id: string) {
    const text = generateKey(type, id);
    keys.push(text);
    return { id: newId(clock()), hash: keyring.hash(text) };
  }

  async function create(fields: Parameters<typeof anApplication>[0] = {}) {
    const permissions = ["token:use"];
    const { id, type, ...rest } = anApplication({ tenantId, permissions, ...fields });
    return store.applications.create(
      { ...rest, id, type, key: newKey(keyTypeOf(type), id) },
      audit.created,
    );
  }

  const owner = await create({ type: "management", name: "owner" });
  const { id: createdBy } = owner;
  const rules = grants.rules.map((rule) => ({ ...rule, conditions: [] }));
  const rotated = await create({ createdBy, type: "private", permissions: ["a:b"], rules });
  await store.applications.update(
    tenantId,
    rotated.id,
    ({ keys: [old] }, now) => {
      const { id, hash, createdAt } = must(old);
      const older = { id, hash, createdAt, expiresAt: now + hour };
      const key = { ...newKey("prv", rotated.id), createdAt: now };
      return { keys: [key, older], modifiedBy: createdBy };
    },
    audit.updated,
  );
  await store.applications.recordUses([
    { applicationId: rotated.id, keyId: must(rotated.keys[0]).id, at: clock() + 1 },
  ]);
  const restricted = await create({
    createdBy,
    expiresAt: clock() + 2 * hour,
    allowedOrigins: ["https://shop.example"],
    allowedCidrs: ["10.0.0.0/8"],
    sessionQuota: 5,
    description: "Sells to consumers",
    externalId: "svc-4711",
    metadata: { team: "payments", "cost.center": "$12" },
  });
  const keyless = await create({ createdBy });
  keys.pop();
  await store.applications.update(
    tenantId,
    keyless.id,
    () => ({
      keys: [],
      modifiedBy: createdBy,
    }),
    audit.updated,
  );
  const disabled = await create({ tenantId: randomUUID() });
  await store.applications.update(
    disabled.tenantId,
    disabled.id,
    () => ({
      disabled: true,
      sessionEpoch: 1,
      modifiedBy: disabled.id,
    }),
    audit.updated,
  );
  // The key of a disabled application does not work.
  keys.pop();

  for (const isAuthorized of [true, false]) {
    const id = newId(clock());
    const { hash: keyHash } = newKey("ses", id);
    const session = aSession(restricted, { id, keyHash });
    await store.sessions.create(session);
    if (isAuthorized) {
      const rules = grants.rules.map(({ container, ...rule }) => rule);
      await store.sessions.authorize(
        aGrant(session, { permissions: ["token:use"], rules }),
        audit.authorized,
      );
    }
  }
  await store.sessions.create(aSession(disabled));
  await store.events.add([aFullEvent({ tenantId }), anEvent({ tenantId }), anEvent()]);
  return keys;
}
