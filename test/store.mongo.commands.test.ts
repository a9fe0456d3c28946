import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import type { Db, Document } from "mongodb";
import {
  aGrant,
  anApplication,
  aSession,
  createBoth,
  hour,
  must,
} from "./store-contract/fixtures.js";
import { useFollowers } from "./support/follow.js";
import { uri, useMongo } from "./support/mongo.js";

const { createDatabase, open } = useMongo();
const follow = useFollowers();

/** The commands that work gives rise to, as the server's profiler saw them, with their plans. */
async function profile(db: Db, work: () => Promise<unknown>): Promise<Document[]> {
  await db.setProfilingLevel("all");
  await work();
  await db.setProfilingLevel("off");
  const ns = { $in: [`${db.databaseName}.applications`, `${db.databaseName}.sessions`] };
  const seen = await db.collection("system.profile").find({ ns }).toArray();
  await db.collection("system.profile").drop();
  return seen;
}

describe("a list in MongoDB", () => {
  it("is found and counted through an index, and never sorted", async () => {
    const db = createDatabase();
    const { list, create } = (await open(db)).applications;
    const tenantId = randomUUID();
    const ids: string[] = [];
    for (let n = 0; n < 30; n++) {
      const { id } = await create(anApplication(n % 3 === 0 ? {} : { tenantId }));
      ids.push(id);
    }
    const after = must(ids[20]);
    const all = { tenantId, size: 5 };
    const byTenant = "{ tenant_id: 1, _id: -1 }";
    const found = `IXSCAN ${byTenant}`;
    const counted = [found, `COUNT_SCAN ${byTenant}`, "IXSCAN { expires_at: 1 }"];
    const countedByIds = [found, found, "IXSCAN { expires_at: 1 }"];
    const expected = {
      "the first page": [() => list({ ...all, from: { page: 1 } }), counted],
      "a later page": [() => list({ ...all, from: { page: 3 } }), counted],
      "the last page": [() => list({ ...all, from: { page: 4 } }), [found]],
      "a page past the end": [() => list({ ...all, from: { page: 9 } }), counted],
      "some ids": [() => list({ ...all, ids: ids.slice(0, 20), from: { page: 1 } }), countedByIds],
      "what follows an id": [() => list({ ...all, from: { after } }), [found]],
      "of some ids what follows": [() => list({ ...all, ids, from: { after } }), [found]],
    } as const;
    for (const [name, [work, plans]] of Object.entries(expected)) {
      const seen = await profile(db, work);
      expect([name, seen.map(({ planSummary }) => planSummary).sort()]).toEqual([
        name,
        [...plans].sort(),
      ]);
      for (const { docsExamined, hasSortStage } of seen) {
        expect(hasSortStage).toBeUndefined();
        expect(docsExamined).toBeLessThanOrEqual(20);
      }
    }
  });
});

describe("a scan for what has expired in MongoDB", () => {
  it("reads in the index, and reads nothing that has not", async () => {
    const db = createDatabase();
    const store = await open(db);
    const expiresAt = (await store.now()) + hour;
    for (let n = 0; n < 30; n++) {
      const owner = await store.applications.create(anApplication({ expiresAt }));
      await store.sessions.create(aSession(owner));
    }
    const follower = follow(store, randomUUID(), { beat: 1 });
    await follower.next();
    const seen = await profile(db, async () => {
      for (let beats = 0; beats < 3; beats++) {
        await follower.next();
      }
    });
    const scans = seen.filter(({ command }) => command.aggregate === "applications");
    expect(scans.length).toBeGreaterThan(0);
    for (const { planSummary, docsExamined, keysExamined } of scans) {
      expect({ planSummary, docsExamined }).toEqual({
        planSummary: "IXSCAN { expires_at: 1 }",
        docsExamined: 0,
      });
      expect(keysExamined).toBeLessThanOrEqual(2);
    }
  });
});

describe("an authentication in MongoDB", () => {
  it("shares its reads with all others of the same turn", async () => {
    const db = createDatabase();
    const store = await open(db);
    const owner = await store.applications.create(anApplication());
    const sessions = Array.from({ length: 150 }, () => aSession(owner));
    await Promise.all(sessions.map(store.sessions.create));
    const seen = await profile(db, async () => {
      const found = await Promise.all(sessions.map(({ id }) => store.sessions.find(id)));
      expect(found.map((one) => one?.session.id)).toEqual(sessions.map(({ id }) => id));
    });
    expect(seen.map(({ planSummary, nreturned }) => [planSummary, nreturned])).toEqual([
      ["IXSCAN { _id: 1 }", 150],
      ["IXSCAN { _id: 1 }", 1],
    ]);
  });
});

describe("a command to MongoDB", () => {
  it("asks for a majority's word from the primary in good time, whatever the URI says", async () => {
    const db = createDatabase();
    const weak =
      "w=1&journal=false&readConcernLevel=local&readPreference=nearest&retryWrites=false";
    const store = await open(db, { uri: `${uri}${uri.includes("?") ? "&" : "?"}${weak}` });
    const seen = await profile(db, async () => {
      const { application, session } = await createBoth(store);
      const { id, tenantId } = application;
      await store.sessions.authorize(aGrant(session));
      await store.sessions.find(session.id);
      await store.applications.update(tenantId, id, () => ({ modifiedBy: id }));
      await store.applications.list({ tenantId, size: 1, from: { page: 2 } });
      await store.applications.isEmpty();
      await store.ping();
      await store.applications.delete(tenantId, id);
    });
    const kinds = new Set<string>();
    for (const { op, command } of seen) {
      // Of a delete the profiler shows the statement without what goes for the whole command.
      if (op === "remove") {
        continue;
      }
      const [kind = ""] = Object.keys(command);
      kinds.add(kind);
      expect(command.maxTimeMS).toBeGreaterThan(0);
      if (kind === "findAndModify") {
        expect(command.writeConcern).toEqual({
          w: "majority",
          j: true,
          wtimeout: expect.any(Number),
        });
        expect(command.txnNumber).toBeDefined();
      } else {
        expect(command.readConcern).toMatchObject({ level: "majority" });
        expect(command.$readPreference?.mode ?? "primary").toBe("primary");
      }
    }
    expect([...kinds].sort()).toEqual(["aggregate", "find", "findAndModify"]);
  });
});
