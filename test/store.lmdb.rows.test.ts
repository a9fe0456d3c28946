import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { open } from "lmdb";
import { ApplicationSchema } from "../gen/latchkey/v1/application_service_pb.js";
import { toApplication } from "../src/applications/to-application.js";
import { idToBytes, newId } from "../src/ids.js";
import { createEncoder } from "../src/server/rest/encode.js";
import {
  type ApplicationRecord,
  applicationTypes,
  type NewApplication,
} from "../src/store/store.js";
import { anEvent } from "./store-contract/event-fixtures.js";
import {
  aGrant,
  anApplication,
  aSession,
  contentOf,
  contentOfNew,
  grants,
  hour,
  idsOf,
  must,
  newestFirst,
  times,
} from "./store-contract/fixtures.js";
import { loadFolder } from "./support/fixtures.js";
import { useLmdbFolder } from "./support/lmdb-folder.js";

const folder = useLmdbFolder();

const encode = createEncoder(ApplicationSchema);

/** An application as the REST API shows it. */
function shown(record: ApplicationRecord): string {
  return encode(create(ApplicationSchema, toApplication(record))).toString();
}

const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 20 }),
  fc.constantFrom('"', "\\", "\u2028", "\ud83d", "é", "日本語", "</script>", "[],"),
);
const absent = fc.constant(undefined);
const rule = fc.record({
  permissions: fc.array(text, { maxLength: 3 }),
  conditions: fc.array(fc.record({ value: text, operator: text, attribute: text }), {
    maxLength: 2,
  }),
  transform: text,
  priority: fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  container: fc.oneof(text, absent),
  description: fc.oneof(text, absent),
});
const someGrants = {
  permissions: fc.array(text, { maxLength: 3 }),
  rules: fc.array(rule, { maxLength: 3 }),
};
const moment = fc.integer({ min: Date.UTC(2100, 0), max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) });
const application = fc.record({
  name: text,
  type: fc.constantFrom(...applicationTypes),
  createdBy: fc.oneof(fc.uuid(), absent),
  expiresAt: fc.oneof(moment, absent),
  allowedOrigins: fc.array(text, { maxLength: 2 }),
  allowedCidrs: fc.array(text, { maxLength: 2 }),
  ...someGrants,
});
const key = fc.record({
  id: fc.uuid(),
  hash: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  createdAt: moment,
  expiresAt: fc.oneof(moment, absent),
  lastUsedAt: fc.oneof(moment, absent),
});
const change = fc.record({
  name: text,
  keys: fc.array(key, { maxLength: 3 }),
  disabled: fc.boolean(),
  sessionEpoch: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  allowedOrigins: fc.array(text, { maxLength: 2 }),
  allowedCidrs: fc.array(text, { maxLength: 2 }),
  modifiedBy: fc.uuid(),
  ...someGrants,
});

describe("the document of an application in LMDB", () => {
  it("is what the REST API shows, byte for byte", async () => {
    const store = await folder.open();
    await fc.assert(
      fc.asyncProperty(application, change, moment, async (given, changed, use) => {
        const at = use - 1;
        const whole = anApplication(given);
        const { id, tenantId } = whole;
        const created = await store.applications.create(whole);
        const found = must(await store.applications.find(id));
        const updated = must(await store.applications.update(tenantId, id, () => changed));
        const query = { tenantId, size: 1, from: { page: 1 } };
        const [listed] = (await store.applications.list(query)).items;
        await store.applications.noteUses([{ applicationId: id, at }]);
        const used = must(await store.applications.find(id));
        await store.applications.noteUses([{ applicationId: id, at: use }]);
        const usedAgain = must(await store.applications.find(id));
        for (const record of [created, found, updated, must(listed), used, usedAgain]) {
          expect(must(record.document).toString()).toBe(shown(record));
        }
        const stamped = contentOfNew(whole, created.createdAt);
        const { version, modifiedAt } = updated;
        expect(contentOf(found)).toEqual({ ...stamped, version: created.version });
        const content = { ...stamped, ...changed, version, modifiedAt };
        expect(contentOf(updated)).toEqual(content);
        expect(contentOf(usedAgain)).toEqual({ ...content, lastUsedAt: use });
      }),
      { numRuns: 60 },
    );
  });

  it("stays as it is while others are read", async () => {
    const store = await folder.open();
    const ids = await Promise.all(
      times(20, async (index) => {
        const name = "x".repeat(index * 500);
        return (await store.applications.create(anApplication({ ...grants, name }))).id;
      }),
    );
    const found = await Promise.all(ids.map((id) => store.applications.find(id)));
    const documents = found.map((record) => JSON.parse(String(must(record).document)));
    expect(documents.map(({ id }) => id)).toEqual(ids);
    expect(documents.map(({ name }) => name.length)).toEqual(times(20, (index) => index * 500));
  });
});

describe("a folder of an earlier version", () => {
  const tenantId = randomUUID();
  const hash = (byte: number) => Buffer.alloc(32, byte);
  const clock = () => Date.UTC(2026, 6);
  const expiresAt = clock() + hour;
  const old = anOld({ ...grants, expiresAt, name: "é" }, hash(1));
  const changed = anOld({ createdBy: old.id }, hash(2));
  const session = aSession(old, { keyHash: hash(3), nonceHash: hash(4) });
  const authorized = aSession(old, { keyHash: hash(5), nonceHash: hash(6) });
  const applicationRows = [
    { ...old, createdAt: 1_000 },
    { ...changed, createdAt: 2_000, modifiedBy: old.id, modifiedAt: 3_000 },
  ];

  /** An application of when it had one key, which had no id. */
  function anOld(fields: Partial<NewApplication>, keyHash: Buffer) {
    const { key: _, ...rest } = anApplication({ tenantId, ...fields });
    return { ...rest, keyHash };
  }

  /** What an application of then is now. */
  function nowOf({ keyHash, ...row }: (typeof applicationRows)[number]) {
    const key = { id: row.id, hash: keyHash };
    return { ...contentOfNew({ ...row, key }, row.createdAt), version };
  }
  const { ttl: _, ...sessionRow } = session;
  const { ttl: __, ...authorizedRow } = authorized;
  const sessionRows = [
    { ...sessionRow, permissions: [], rules: [], createdAt: 4_000, expiresAt },
    {
      ...authorizedRow,
      ...grants,
      createdAt: 5_000,
      expiresAt,
      authorizedAt: 6_000,
      authorizedBy: changed.id,
    },
  ];
  const version = 7;

  /** A row as version 0.1.0 wrote it. */
  function rowOf(record: object): Buffer {
    const stamp = Buffer.alloc(8);
    stamp.writeDoubleBE(version);
    const inBase64 = (_: string, value: unknown) =>
      (value as { type?: string } | null)?.type === "Buffer"
        ? Buffer.from((value as { data: number[] }).data).toString("base64")
        : value;
    return Buffer.concat([stamp, Buffer.from(JSON.stringify(record, inBase64))]);
  }

  function momentKey(moment: number, id: string): Buffer {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleBE(moment);
    return Buffer.concat([bytes, idToBytes(id)]);
  }

  async function writeOldFolder(schema: number): Promise<void> {
    const root = open({ path: folder.path(), noSubdir: false, overlappingSync: false });
    const table = (name: string) =>
      root.openDB<Buffer, Buffer>({ name, encoding: "binary", keyEncoding: "binary" });
    const [applications, sessions, byTenant] = ["applications", "sessions", "by-tenant"].map(table);
    const [applicationEnds, sessionEnds, tenantEnds] = [
      "application-ends",
      "session-ends",
      "tenant-ends",
    ].map(table);
    const counts = root.openDB<string, Buffer>({
      name: "counts",
      encoding: "string",
      keyEncoding: "binary",
    });
    const nothing = Buffer.alloc(0);
    const end = Buffer.alloc(8);
    for (const record of applicationRows) {
      await must(applications).put(idToBytes(record.id), rowOf(record));
      end.writeDoubleBE(record.expiresAt ?? Number.POSITIVE_INFINITY);
      const key = Buffer.concat([idToBytes(tenantId), idToBytes(record.id)]);
      await must(byTenant).put(key, Buffer.from(end));
    }
    await must(applicationEnds).put(momentKey(expiresAt, old.id), nothing);
    const tenantEnd = Buffer.concat([idToBytes(tenantId), momentKey(expiresAt, old.id)]);
    await must(tenantEnds).put(tenantEnd, nothing);
    for (const record of sessionRows) {
      await must(sessions).put(idToBytes(record.id), rowOf(record));
      await must(sessionEnds).put(momentKey(expiresAt, record.id), nothing);
    }
    await counts.put(idToBytes(tenantId), "2");
    const meta = root.openDB<string, string>({ name: "meta", encoding: "string" });
    await meta.put("schema", String(schema));
    if (schema > 1) {
      await meta.put("id", randomUUID());
    }
    await root.close();
  }

  it.each([1, 2])("of schema %i is read as it was written", async (schema) => {
    await writeOldFolder(schema);
    const { applications, sessions } = await folder.open({ clock });
    for (const row of applicationRows) {
      const found = must(await applications.find(row.id));
      expect(contentOf(found)).toEqual(nowOf(row));
      expect(must(found.document).toString()).toBe(shown(found));
    }
    for (const row of sessionRows) {
      const found = must(await sessions.find(row.id));
      expect(contentOf(found.session)).toEqual({ ...row, epoch: 0, version });
      expect(found.application.name).toBe("é");
    }
    const page = await applications.list({ tenantId, size: 9, from: { page: 1 } });
    expect(page).toMatchObject({ total: 2, more: false });
    expect(page.items.map(({ name }) => name).sort()).toEqual(["shop", "é"]);
  });

  it.each([1, 2])("of schema %i goes on working", async (schema) => {
    await writeOldFolder(schema);
    const { applications, sessions } = await folder.open({ clock });
    const updated = must(
      await applications.update(tenantId, old.id, ({ name }) => ({
        name: `${name}è`,
        modifiedBy: changed.id,
      })),
    );
    expect(updated).toMatchObject({ ...grants, name: "éè", createdAt: 1_000, expiresAt });
    expect(updated.version).toBeGreaterThan(version);
    expect(updated.keys.map((key) => Buffer.from(key.hash))).toEqual([hash(1)]);
    expect(await applications.find(old.id)).toEqual(updated);

    expect(await sessions.authorize(aGrant(authorized))).toBe("used");
    expect(await sessions.authorize(aGrant(session, grants))).toBe("authorized");
    const found = must(await sessions.find(session.id)).session;
    expect(found).toMatchObject({ ...grants, createdAt: 4_000, expiresAt });
    expect(found.version).toBeGreaterThan(version);

    const fresh = await applications.create(anApplication({ tenantId, id: newId(Date.now()) }));
    expect(await applications.delete(tenantId, changed.id)).toBe(true);
    const page = await applications.list({ tenantId, size: 9, from: { page: 1 } });
    expect(page).toEqual({ items: [fresh, updated], total: 2, more: false });
  });

  it.each([1, 2])("of schema %i has its sessions listed and revoked", async (schema) => {
    await writeOldFolder(schema);
    const { applications, sessions } = await folder.open({ clock });
    const list = async (query = {}) =>
      idsOf((await sessions.list({ tenantId, size: 9, ...query })).items);
    const both = newestFirst([session.id, authorized.id]);
    expect(await list()).toEqual(both);
    expect(await list({ applicationId: old.id })).toEqual(both);
    expect(await list({ applicationId: changed.id })).toEqual([]);
    await applications.update(tenantId, old.id, () => ({ sessionEpoch: 1, modifiedBy: old.id }));
    expect(await list()).toEqual([]);
  });
});

describe("a folder of schema 3", () => {
  it("is read as it was written", async () => {
    const known = await loadFolder("data-folder-schema-3", folder.path());
    const { applications, sessions } = await folder.open();
    for (const { id, body } of Object.values(known.applications)) {
      const found = must(await applications.find(id));
      const { created_at } = JSON.parse(body);
      expect(found.keys).toMatchObject([{ id, createdAt: Date.parse(created_at) }]);
      expect(must(found.document).toString()).toBe(shown(found));
      expect(JSON.parse(shown(found))).toMatchObject(JSON.parse(body));
    }
    const { tenantId } = known;
    const { open: unauthorized, authorized } = known.sessions;
    const page = await sessions.list({ tenantId, size: 9 });
    expect(idsOf(page.items)).toEqual(newestFirst([unauthorized.id, authorized.id]));
    const { session } = must(await sessions.find(authorized.id));
    const { permissions, rules, expires_at } = authorized;
    expect(session).toMatchObject({ permissions, rules, epoch: 0 });
    expect(session.expiresAt).toBe(Date.parse(expires_at));
  });

  it("has the ends that it had", async () => {
    const known = await loadFolder("data-folder-schema-3", folder.path());
    const ending = Object.values(known.applications).filter(({ body }) =>
      JSON.parse(body).expires_at?.startsWith("2099"),
    );
    const store = await folder.open({ clock: () => Date.UTC(2100, 0) });
    const told: string[] = [];
    await store.events.addForEnds(0, ({ tenantId, applicationId }) => {
      told.push(applicationId);
      return anEvent({ tenantId });
    });
    expect(ending.length).toBeGreaterThan(0);
    expect(told.sort()).toEqual(ending.map(({ id }) => id).sort());
  });

  it("keeps the rows that are written anew, by a use or a change", async () => {
    const known = await loadFolder("data-folder-schema-3", folder.path());
    const { tenantId } = known;
    const store = await folder.open();
    const { applications } = store;
    for (const { id } of Object.values(known.applications)) {
      const before = must(await applications.find(id));
      const at = before.createdAt + hour;
      await applications.noteUses([{ applicationId: id, keyId: id, at }]);
      const used = must(await applications.find(id));
      const [key] = contentOf(before).keys;
      const uses = { lastUsedAt: at, keys: [{ ...key, lastUsedAt: at }] };
      expect(contentOf(used)).toEqual({ ...contentOf(before), ...uses });
      expect(must(used.document).toString()).toBe(shown(used));
      const updated = await applications.update(tenantId, id, () => ({ modifiedBy: id }));
      const stamps = { modifiedBy: id, modifiedAt: expect.any(Number), version: updated?.version };
      expect(contentOf(updated)).toEqual({ ...contentOf(used), ...stamps });
      expect(must(updated?.document).toString()).toBe(shown(must(updated)));
    }
  });

  it("is made ready again where one that did so was stopped halfway", async () => {
    const { tenantId, sessions } = await loadFolder("data-folder-schema-3", folder.path());
    const ids = newestFirst(Object.values(sessions).map(({ id }) => id));
    const first = await folder.open();
    await first.close();
    const root = open({ path: folder.path(), noSubdir: false, overlappingSync: false, maxDbs: 32 });
    await root.openDB<string, string>({ name: "meta", encoding: "string" }).put("schema", "3");
    const byTenant = root.openDB({ name: "sessions-by-tenant", keyEncoding: "binary" });
    await byTenant.remove([...byTenant.getKeys()][0] as never);
    await root.close();
    const { sessions: reopened } = await folder.open();
    expect(idsOf((await reopened.list({ tenantId, size: 9 })).items)).toEqual(ids);
  });
});
