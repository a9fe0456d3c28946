import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "@jest/globals";
import type { Db } from "mongodb";
import type { NewSession, Store } from "../src/store/store.js";
import { aGrant, anApplication, aSession, hour, must, times } from "./store-contract/fixtures.js";
import { useFollowers } from "./support/follow.js";
import { useMongo } from "./support/mongo.js";
import { type Plan, plansOf } from "./support/mongo-plans.js";

const { createDatabase, open } = useMongo();
const follow = useFollowers();

const byId = '{"_id":1}';
const byTenant = '{"tenant_id":1,"_id":-1}';
const byExpiry = '{"expires_at":1}';

/** A scan of a whole collection, or a sort in memory, be it of a plan or of a pipeline. */
const badStage = /^(COLLSCAN|CLUSTERED_IXSCAN|\$?sort)/i;

/** A command, the index that it reads, and how many keys and documents it examines. */
type Seen = readonly [command: string, index: string, keys: number, documents: number];

describe("MongoDB, in a store with much that was not asked for,", () => {
  const tenantId = randomUUID();
  const ids = times(60, () => anApplication().id).sort();
  const expired = 6;
  let db: Db;
  let store: Store;
  let owner: ReturnType<typeof anApplication>;
  let sessions: NewSession[];

  beforeAll(async () => {
    db = createDatabase();
    store = await open(db);
    const now = await store.now();
    const { create } = store.applications;
    // The first that a scan of the collection would meet have expired.
    for (const [n, id] of ids.entries()) {
      await create(anApplication({ id, tenantId, ...(n < expired && { expiresAt: now }) }));
    }
    for (let n = 0; n < 30; n++) {
      await create(anApplication({ expiresAt: now + hour }));
    }
    owner = await create(anApplication());
    sessions = times(30, () => aSession(owner));
    await Promise.all(sessions.map(store.sessions.create));
  });

  const idAt = (index: number) => must(ids.at(index));
  const sessionAt = (index: number) => must(sessions.at(index));
  const list = (query: { from: { page: number } | { after: string }; ids?: string[] }) =>
    store.applications.list({ tenantId, size: 5, ...query });

  const findOne: Seen = ["find applications", byId, 1, 1];
  const findOneSession: Seen = ["find sessions", byId, 1, 1];
  const countAll: Seen = ["aggregate applications", byTenant, 61, 0];
  const countExpired: Seen = ["aggregate applications", byExpiry, expired, expired];

  const operations: Record<string, [work: () => unknown, expected: Seen[]]> = {
    "find an application": [() => store.applications.find(idAt(10)), [findOne]],
    "find many applications": [
      () => Promise.all(ids.slice(10, 40).map(store.applications.find)),
      [["find applications", byId, 31, 30]],
    ],
    "find an application that has expired": [
      () => store.applications.findExpired(idAt(0)),
      [findOne],
    ],
    "ask whether there is any": [
      () => store.applications.isEmpty(),
      [["find applications", byExpiry, 2, 2]],
    ],
    "ask whether it answers": [() => store.ping(), [["find applications", byId, 1, 0]]],
    "list the first page": [
      () => list({ from: { page: 1 } }),
      [["find applications", byTenant, 6, 6], countAll, countExpired],
    ],
    "list a later page": [
      () => list({ from: { page: 4 } }),
      [["find applications", byTenant, 21, 21], countAll, countExpired],
    ],
    "list the last page, which needs no count": [
      () => list({ from: { page: 11 } }),
      [["find applications", byTenant, 60, 60]],
    ],
    "list a page past the end": [
      () => list({ from: { page: 20 } }),
      [["find applications", byTenant, 60, 60], countAll, countExpired],
    ],
    "list what follows an id": [
      () => list({ from: { after: idAt(40) } }),
      [["find applications", byTenant, 7, 6]],
    ],
    "list some ids": [
      () => list({ ids: ids.slice(20, 40), from: { page: 1 } }),
      [
        ["find applications", byTenant, 7, 6],
        ["aggregate applications", byTenant, 21, 0],
        countExpired,
      ],
    ],
    "list of some ids what follows": [
      () => list({ ids: ids.slice(20, 40), from: { after: idAt(35) } }),
      [["find applications", byTenant, 7, 6]],
    ],
    "create an application": [
      () => store.applications.create(anApplication()),
      [["findAndModify applications", byId, 1, 1]],
    ],
    "update an application": [
      () => store.applications.update(tenantId, idAt(20), () => ({ modifiedBy: idAt(20) })),
      [findOne, ["findAndModify applications", byId, 1, 1]],
    ],
    "delete an application": [
      () => store.applications.delete(owner.tenantId, idAt(21)),
      [["delete applications", byId, 1, 1]],
    ],
    "create a session": [
      () => store.sessions.create(aSession(owner)),
      [findOne, ["findAndModify sessions", byId, 1, 1]],
    ],
    "find a session": [() => store.sessions.find(sessionAt(0).id), [findOneSession, findOne]],
    "find out whether a session has expired": [
      () => store.sessions.findExpired(sessionAt(0).id),
      [findOneSession, findOne, findOne, findOneSession],
    ],
    "authorize a session": [
      () => store.sessions.authorize(aGrant(sessionAt(1))),
      [["findAndModify sessions", byId, 1, 1], findOne],
    ],
    "authorize a session with a nonce that is wrong": [
      () => store.sessions.authorize(aGrant({ ...sessionAt(2), nonceHash: Buffer.alloc(32) })),
      [["findAndModify sessions", byId, 1, 1], findOneSession],
    ],
  };

  it.each(Object.entries(operations))("reads an index to %s", async (_, [work, expected]) => {
    const plans = inOrder((await plansOf(db, async () => work())).map(toSeen));
    const bounds = inOrder(expected);
    expect(plans.map(nameOf)).toEqual(bounds.map(nameOf));
    for (const [n, [, , keys, documents]] of plans.entries()) {
      const [, , mostKeys, mostDocuments] = must(bounds[n]);
      expect(keys).toBeLessThanOrEqual(mostKeys);
      expect(documents).toBeLessThanOrEqual(mostDocuments);
    }
  });

  it("reads the indexes of both collections to tell what has expired", async () => {
    const follower = follow(store, tenantId, { beat: 1 });
    await follower.next();
    const plans = await plansOf(db, async () => {
      for (let beats = 0; beats < 3; beats++) {
        await follower.next();
      }
    });
    expect(plans.length).toBeGreaterThan(0);
    for (const [command, index, keys, documents] of plans.map(toSeen)) {
      expect([command, index, documents]).toEqual(["aggregate applications", byExpiry, 0]);
      expect(keys).toBeLessThanOrEqual(2);
    }
  });
});

/** What a plan did, if it did nothing that it should not. */
function toSeen({ command, stages, keysExamined, docsExamined }: Plan): Seen {
  expect(stages.filter((stage) => badStage.test(stage))).toEqual([]);
  const indexes = stages.flatMap((stage) =>
    /^(IDHACK|EXPRESS)/.test(stage) ? [byId] : (/\{.*/.exec(stage) ?? []),
  );
  return [command, [...new Set(indexes)].join(), keysExamined, docsExamined];
}

/** Commands that are sent at once may come in any order. */
function inOrder(all: readonly Seen[]): Seen[] {
  return all.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
}

function nameOf([command, index]: Seen): string {
  return `${command} ${index}`;
}
