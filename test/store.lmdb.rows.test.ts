import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { open } from "lmdb";
import { ApplicationSchema } from "../gen/latchkey/v1/application_service_pb.js";
import { toApplication } from "../src/applications/to-application.js";
import { idToBytes, newId } from "../src/ids.js";
import { createEncoder } from "../src/server/rest/encode.js";
import { type ApplicationRecord, applicationTypes } from "../src/store/store.js";
import {
  aGrant,
  anApplication,
  aSession,
  contentOf,
  grants,
  hour,
  must,
  times,
} from "./store-contract/fixtures.js";
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
  ...someGrants,
});

describe("the document of an application in LMDB", () => {
  it("is what the REST API shows, byte for byte", async () => {
    const store = await folder.open();
    const changes = fc.record({ name: text, modifiedBy: fc.uuid(), ...someGrants });
    await fc.assert(
      fc.asyncProperty(application, changes, async (given, changed) => {
        const whole = anApplication(given);
        const { id, tenantId } = whole;
        const created = await store.applications.create(whole);
        const found = must(await store.applications.find(id));
        const updated = must(await store.applications.update(tenantId, id, () => changed));
        const [listed] = (await store.applications.list({ tenantId, size: 1, from: { page: 1 } }))
          .items;
        for (const record of [created, found, updated, must(listed)]) {
          expect(must(record.document).toString()).toBe(shown(record));
        }
        const stamps = { createdAt: expect.any(Number), version: expect.any(Number) };
        expect(contentOf(found)).toEqual({ ...whole, ...stamps });
        const modifiedAt = expect.any(Number);
        expect(contentOf(updated)).toEqual({ ...whole, ...changed, ...stamps, modifiedAt });
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
  const expiresAt = Date.now() + hour;
  const old = anApplication({ ...grants, tenantId, keyHash: hash(1), expiresAt, name: "é" });
  const changed = anApplication({ tenantId, keyHash: hash(2), createdBy: old.id });
  const session = aSession(old, { keyHash: hash(3), nonceHash: hash(4) });
  const authorized = aSession(old, { keyHash: hash(5), nonceHash: hash(6) });
  const applicationRows = [
    { ...old, createdAt: 1_000 },
    { ...changed, createdAt: 2_000, modifiedBy: old.id, modifiedAt: 3_000 },
  ];
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
    const { applications, sessions } = await folder.open();
    for (const row of applicationRows) {
      const found = must(await applications.find(row.id));
      expect(contentOf(found)).toEqual({ ...row, version });
      expect(must(found.document).toString()).toBe(shown(found));
    }
    for (const row of sessionRows) {
      const found = must(await sessions.find(row.id));
      expect(contentOf(found.session)).toEqual({ ...row, version });
      expect(found.application.name).toBe("é");
    }
    const page = await applications.list({ tenantId, size: 9, from: { page: 1 } });
    expect(page).toMatchObject({ total: 2, more: false });
    expect(page.items.map(({ name }) => name).sort()).toEqual(["shop", "é"]);
  });

  it.each([1, 2])("of schema %i goes on working", async (schema) => {
    await writeOldFolder(schema);
    const { applications, sessions } = await folder.open();
    const updated = must(
      await applications.update(tenantId, old.id, ({ name }) => ({
        name: `${name}è`,
        modifiedBy: changed.id,
      })),
    );
    expect(updated).toMatchObject({ ...grants, name: "éè", createdAt: 1_000, expiresAt });
    expect(updated.version).toBeGreaterThan(version);
    expect(Buffer.compare(updated.keyHash, hash(1))).toBe(0);
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
});
