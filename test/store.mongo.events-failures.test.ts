import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Binary, MongoClient } from "mongodb";
import type { NewEvent } from "../src/store/events.js";
import { openEventStream, type StreamEvent } from "../src/store/mongo/event-stream.js";
import { StoreUnavailable } from "../src/store/store.js";
import { anEvent } from "./store-contract/event-fixtures.js";
import { anApplication, times } from "./store-contract/fixtures.js";
import { type FailingMongo, startFailingMongo } from "./support/failing-mongo.js";
import { useEventFollowers } from "./support/follow.js";
import { until } from "./support/until.js";

const follow = useEventFollowers();

interface Inserted extends StreamEvent {
  readonly documentKey: { readonly _id: Binary };
}

describe("those who follow events in a MongoDB that fails", () => {
  let failing: FailingMongo;

  beforeAll(async () => {
    failing = await startFailingMongo();
  });

  afterAll(() => failing?.stop());

  it("hear that it is unavailable, and can go on where they were", async () => {
    const { store, fail } = failing;
    const { tenantId } = anApplication();
    const follower = follow(store, tenantId);
    await follower.next();
    const ended = expect(follower.step()).rejects.toBeInstanceOf(StoreUnavailable);
    const failCommands = ["aggregate", "getMore"];
    await fail("alwaysOn", { failCommands, errorCode: 11_600 });
    await ended;
    await expect(follow(store, tenantId).next()).rejects.toBeInstanceOf(StoreUnavailable);
    await fail("off");
    await until(
      () =>
        store.ping().then(
          () => true,
          () => false,
        ),
      10_000,
    );
    await store.events.add([anEvent({ tenantId, kind: "meanwhile" })]);
    const again = follow(store, tenantId, { after: follower.position() });
    expect(await again.until(({ kind }) => kind === "meanwhile")).toHaveLength(1);
  });

  it("find every event behind the same mark, wherever in a transaction their stream starts or is cut", async () => {
    const { store, mongod, fail } = failing;
    const client = await new MongoClient(mongod.uri, { appName: "latchkey" }).connect();
    const isEvent = { $match: { operationType: "insert", "ns.coll": "events" } };
    const read = async (start: string, count: number, isCut = false) => {
      const options = { batchSize: 2 };
      const stream = openEventStream<Inserted>(client.db("latchkey"), [isEvent], start, options);
      const found: string[] = [];
      while (found.length < count) {
        const { event, mark } = await stream.next();
        found.push(...(event ? [`${mark} ${event.documentKey._id}`] : []));
        if (isCut) {
          await fail({ times: 1 }, { failCommands: ["getMore"], closeConnection: true });
        }
      }
      await fail("off");
      await stream.close();
      return found;
    };
    const { position } = await follow(store, randomUUID()).next();
    await store.events.add(times(7, () => anEvent()));
    const all = await read(position, 7);
    expect(new Set(all).size).toBe(7);
    expect(await read(position, 7, true)).toEqual(all);
    for (const [index, found] of all.slice(0, -1).entries()) {
      const [mark = ""] = found.split(" ");
      expect(await read(mark, 6 - index)).toEqual(all.slice(index + 1));
    }
    await client.close();
  });

  /** One tenant that is followed, and one whose events are so many that others' are not remembered for all. */
  async function startCrowd() {
    const { store } = failing;
    const tenantId = randomUUID();
    const follower = follow(store, tenantId);
    await follower.next();
    /** Adds some of one's own and some of the crowd, and resolves when all of them are published. */
    const add = async (own: readonly NewEvent[], crowd: number) => {
      const all = times(crowd, () => anEvent({ tenantId }));
      await store.events.add([...own, ...all, anEvent({ tenantId, kind: "last" })]);
      await follower.until(({ kind }) => kind === "last");
    };
    return { add };
  }

  it("are told what is forgotten while they turn from a stream of their own to that of all", async () => {
    const { store } = failing;
    const { add } = await startCrowd();
    const tenantId = randomUUID();
    const slow = follow(store, tenantId);
    await slow.next();
    await add(
      times(30, (index) => anEvent({ tenantId, requestId: `${index}` })),
      984,
    );
    await add([], 999);
    const { events: first } = await slow.next();
    expect(first).toHaveLength(15);
    const lags = await failing.lag("killCursors");
    const rest = slow.until(({ requestId }) => requestId === "29");
    await lags();
    await add([], 9);
    const told = [...first, ...(await rest)].map(({ requestId }) => requestId);
    expect(told).toEqual(times(30, String));
  });

  it("are told at once what was published before they came, though they come from further back", async () => {
    const { store } = failing;
    const { add } = await startCrowd();
    const tenantId = randomUUID();
    const away = follow(store, tenantId);
    await away.next();
    away.stop();
    await add([], 1_100);
    await add([], 1_100);
    await add([anEvent({ tenantId, kind: "meanwhile" })], 0);
    const again = follow(store, tenantId, { after: away.position() });
    expect(await again.until(({ kind }) => kind === "meanwhile")).toHaveLength(1);
  });

  it("hear that they have missed some where the server does not remember them", async () => {
    const { store, fail } = failing;
    const { tenantId } = anApplication();
    const quick = follow(store, tenantId);
    await quick.next();
    const namespace = "latchkey.$cmd.aggregate";
    await fail({ times: 1 }, { failCommands: ["aggregate"], namespace, errorCode: 286 });
    const stale = follow(store, tenantId, { after: "000000010000000100000001" });
    expect(await stale.next()).toMatchObject({ events: [], missed: true });
    await store.events.add([anEvent({ tenantId, kind: "later" })]);
    for (const one of [quick, stale]) {
      expect(await one.next()).toMatchObject({ events: [{ kind: "later" }], missed: false });
    }
  });
});
