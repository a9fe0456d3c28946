import { describe, expect, it } from "@jest/globals";
import { aGrant, anApplication, aSession, createBoth } from "./store-contract/fixtures.js";
import { inLanes } from "./support/in-lanes.js";
import { uri, useMongo } from "./support/mongo.js";
import { profile } from "./support/mongo-profile.js";

const { createDatabase, open } = useMongo();

describe("an authentication in MongoDB", () => {
  it("shares its reads with all others of the same turn", async () => {
    const db = createDatabase();
    const store = await open(db);
    const owner = await store.applications.create(anApplication());
    const sessions = Array.from({ length: 150 }, () => aSession(owner));
    // A few at a time, which a slow machine can take.
    await inLanes(25, sessions, async (one) => void (await store.sessions.create(one)));
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
      await store.sessions.list({ tenantId, size: 1 });
      await store.sessions.delete(tenantId, session.id);
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
