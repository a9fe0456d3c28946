import { randomUUID } from "node:crypto";
import { describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import { createEventIds, firstIdAt } from "../src/store/mongo/event-ids.js";
import { StoreUnavailable } from "../src/store/store.js";
import { aFullEvent, anEvent, day, listEvents } from "./store-contract/event-fixtures.js";
import { hour, must, times } from "./store-contract/fixtures.js";
import { createTestClock } from "./support/clock.js";
import { useEventFollowers } from "./support/follow.js";
import { useMongo } from "./support/mongo.js";
import { plansOf } from "./support/mongo-plans.js";
import { hasStreams } from "./support/mongo-streams.js";
import { until } from "./support/until.js";

const { createDatabase, open } = useMongo();
const follow = useEventFollowers();

describe("the ids of events", () => {
  it("sort in the order in which they were made, whatever the clock does", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { maxLength: 300 }), (steps) => {
        let now = 4_000_000_000_000;
        const nextId = createEventIds(() => now);
        const ids = steps.map((step) => {
          now += step;
          return nextId();
        });
        expect(ids).toEqual([...ids].sort());
        expect(new Set(ids).size).toBe(ids.length);
      }),
    );
  });

  it("are those of a moment, and soon after it where there are too many for it", () => {
    const now = 4_000_000_000_000;
    const nextId = createEventIds(() => now);
    const ids = times(5_000, nextId);
    expect(ids).toEqual([...ids].sort());
    expect(must(ids[0]) >= firstIdAt(now) && must(ids[4_095]) < firstIdAt(now + 1)).toBe(true);
    expect(must(ids[4_096]) >= firstIdAt(now + 1)).toBe(true);
    expect(firstIdAt(-hour)).toBe(firstIdAt(0));
  });
});

describe("an event in MongoDB", () => {
  it("is stamped by the clock of the database, and found by it, however those of the instances differ", async () => {
    const store = await open(createDatabase());
    const clock = jest.spyOn(Date, "now");
    try {
      const tenantId = randomUUID();
      const now = await store.now();
      for (const skew of [-50_000, 50_000]) {
        clock.mockReturnValue(now + skew);
        await store.events.add([anEvent({ tenantId })]);
        const found = await listEvents(store, { tenantId, since: now, until: now + 30_000 });
        expect(found).toHaveLength(skew < 0 ? 1 : 2);
      }
    } finally {
      clock.mockRestore();
    }
  });

  it("is not there after its time, whether it is swept or not", async () => {
    const clock = createTestClock(Date.UTC(2100, 0));
    const store = await open(createDatabase(), { clock: clock.now, eventRetention: day });
    const event = anEvent();
    const { tenantId, kind } = event;
    await store.events.add([event]);
    clock.advance(day);
    for (const query of [{}, { kind }, { target: must(event.target.applicationId) }]) {
      expect(await listEvents(store, { tenantId, ...query })).toHaveLength(1);
    }
    clock.advance(1);
    for (const query of [{}, { kind }, { target: must(event.target.applicationId) }]) {
      expect(await listEvents(store, { tenantId, ...query })).toEqual([]);
    }
  });

  it("is swept after the time that was last set", async () => {
    const db = createDatabase();
    const events = db.collection("events");
    const seconds = async () => {
      const indexes = await events.indexes();
      return indexes.find(({ key }) => "at" in key)?.expireAfterSeconds;
    };
    const store = await open(db, { eventRetention: day });
    expect(await seconds()).toBe(day / 1_000);
    await store.events.add([anEvent()]);
    await open(db, { eventRetention: 1_000 });
    expect(await seconds()).toBe(1);
    // A server other than ours may sweep but once a minute.
    await until(async () => (await events.countDocuments()) === 0, 90_000);
  }, 120_000);

  it("is refused when written malformed behind our back", async () => {
    const db = createDatabase();
    const store = await open(db);
    await store.events.add([aFullEvent()]);
    for (const fields of [{ at: Date.now() }, { outcome: "maybe" }, { targets: "all" }]) {
      const refused = db.collection("events").updateOne({}, { $set: fields });
      await expect(refused).rejects.toMatchObject({ code: 121 });
    }
  });

  it("is found in an index, whatever it is asked for by", async () => {
    const db = createDatabase();
    const store = await open(db);
    const [tenantId, target, actor] = [randomUUID(), randomUUID(), randomUUID()];
    const parties = { target: { applicationId: target }, actor: { keyId: actor } };
    const now = await store.now();
    for (let round = 0; round < 4; round++) {
      await store.events.add([
        anEvent({ tenantId, ...parties, kind: "rare" }),
        ...times(50, () => anEvent({ tenantId })),
      ]);
    }
    for (const [query, index] of [
      [{}, { tenant_id: 1, _id: -1 }],
      [{ since: now }, { tenant_id: 1, _id: -1 }],
      [{ kind: "rare" }, { tenant_id: 1, kind: 1, _id: -1 }],
      [{ actor }, { tenant_id: 1, actors: 1, _id: -1 }],
      [
        { target, actor, kind: "rare" },
        { tenant_id: 1, targets: 1, _id: -1 },
      ],
    ] as const) {
      const list = () => store.events.list({ tenantId, size: 2, ...query });
      const [plan] = await plansOf(db, list);
      expect(must(plan).stages).toContain(`IXSCAN ${JSON.stringify(index)}`);
      expect(must(plan).stages).not.toContain("SORT");
      expect(must(plan).docsExamined).toBeLessThanOrEqual(3);
    }
    const before = { tenantId, size: 2, until: now - 11 * 60_000 };
    const [plan] = await plansOf(db, () => store.events.list(before));
    expect(must(plan).keysExamined).toBeLessThanOrEqual(1);
  });
});

describe("those who follow events in MongoDB", () => {
  it("share one stream, which closes when the last of them leaves", async () => {
    const db = createDatabase();
    const store = await open(db);
    const followers = times(10, () => follow(store, randomUUID()));
    await Promise.all(followers.map((one) => one.next()));
    await hasStreams(db, 1);
    for (const one of followers) {
      one.stop();
    }
    await hasStreams(db, 0);
  });

  it("end with the store", async () => {
    const store = await open(createDatabase());
    const waits = follow(store, randomUUID());
    await waits.next();
    const ended = expect(waits.step()).rejects.toBeInstanceOf(StoreUnavailable);
    await store.close();
    await ended;
    await expect(follow(store, randomUUID()).next()).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it("are told all, though they were slow, or away, and others have long been told", async () => {
    const db = createDatabase();
    const store = await open(db);
    const tenantId = randomUUID();
    const [slow, away, quick] = times(3, () => follow(store, tenantId));
    for (const one of [slow, away, quick]) {
      await must(one).next();
    }
    must(away).stop();
    const events = times(2_300, (index) => anEvent({ tenantId, requestId: `${index}` }));
    for (let start = 0; start < events.length; start += 100) {
      await store.events.add([...events.slice(start, start + 100), anEvent()]);
    }
    const isLast = ({ requestId }: { requestId?: string | undefined }) => requestId === "2299";
    const all = events.map(({ requestId }) => requestId);
    const back = follow(store, tenantId, { after: must(away).position() });
    for (const one of [must(quick), must(slow), back]) {
      const told = await one.until(isLast);
      expect(told.map(({ requestId }) => requestId)).toEqual(all);
    }
    await store.events.add([anEvent({ tenantId, kind: "later" })]);
    for (const one of [must(quick), must(slow), back]) {
      expect(await one.next()).toMatchObject({ events: [{ kind: "later" }], missed: false });
    }
    await hasStreams(db, 1);
  });

  it("move on with each beat, though nothing happens in their tenant", async () => {
    const store = await open(createDatabase());
    const follower = follow(store, randomUUID(), { beat: 1 });
    const { position } = await follower.next();
    await store.events.add([anEvent()]);
    await until(async () => (await follower.next()).position > position, 10_000);
  });
});
