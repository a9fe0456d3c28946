import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { newId } from "../../../src/lib/uuid.js";
import { isId } from "../../../src/lib/uuid-text.js";
import {
  copyEvent,
  type EventQuery,
  type EventRecord,
  type NewEvent,
  type Principal,
} from "../../../src/store/port/events.js";
import { useEventFollowers } from "../../support/api/followers.js";
import type { OperableStore } from "../../support/store/operations.js";
import { aFullEvent, anEvent, aState, listEvents } from "./event-fixtures.js";
import { must, times, unusualTexts } from "./fixtures.js";
import { expectToStopOnAbort } from "./follower-fixtures.js";
import type { Subject } from "./subject.js";

/** The fields that the store sets. */
const setByStore = { id: expect.any(String), at: expect.any(Number) };

function requestIds(events: readonly NewEvent[]) {
  return events.map(({ requestId }) => requestId);
}

/** A plain implementation of the filters. */
function matches(event: EventRecord, query: Omit<EventQuery, "size">): boolean {
  const has = (principal: Principal | undefined, id: string) =>
    [principal?.applicationId, principal?.sessionId, principal?.keyId].includes(id);
  const hasAny = (principal: string) => has(event.target, principal) || has(event.actor, principal);
  return (
    event.tenantId === query.tenantId &&
    (query.principal === undefined || hasAny(query.principal)) &&
    (query.target === undefined || has(event.target, query.target)) &&
    (query.actor === undefined || has(event.actor, query.actor)) &&
    (query.kinds === undefined || query.kinds.includes(event.kind)) &&
    (query.requestId === undefined || event.requestId === query.requestId) &&
    (query.address === undefined || event.address === query.address) &&
    (query.reason === undefined || event.reason === query.reason) &&
    (query.method === undefined || event.method === query.method) &&
    (query.since === undefined || event.at >= query.since) &&
    (query.until === undefined || event.at < query.until)
  );
}

export function describeEvents(subject: () => Subject): void {
  const follow = useEventFollowers();

  /** Adds events one by one, a millisecond apart. */
  async function addOneByOne(events: readonly NewEvent[], by?: OperableStore): Promise<void> {
    const { store, clock } = subject();
    for (const event of events) {
      await (by ?? store).events.add([event]);
      clock.advance(1);
    }
  }

  function numbered(count: number, fields: Partial<NewEvent>): NewEvent[] {
    return times(count, (index) => anEvent({ requestId: `request ${index}`, ...fields }));
  }

  describe("events", () => {
    it("are listed newest first, with all fields, an id and a time", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      const start = clock.now();
      const events = [aFullEvent({ tenantId }), anEvent({ tenantId }), aFullEvent({ tenantId })];
      await addOneByOne(events);
      const { items, next } = await store.events.list({ tenantId, size: 3 });
      const ids = items.map(({ id }) => id);
      expect(next).toBeUndefined();
      expect(ids.every(isId)).toBe(true);
      expect(ids).toEqual([...ids].sort().reverse());
      expect(items).toEqual(
        events
          .map((event, index) => ({ ...event, id: ids[2 - index], at: start + index }))
          .reverse(),
      );
    });

    it("store unusual texts unchanged", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      for (const text of unusualTexts) {
        const state = aState({ permissions: [text], name: text });
        const event = anEvent({ tenantId, kind: text, reason: text, requestId: text });
        const unusual = { kinds: [text], reason: text, requestId: text, address: text };
        await store.events.add([{ ...event, address: text, before: state }]);
        const { items } = await store.events.list({ tenantId, ...unusual, size: 9 });
        expect(items).toEqual([{ ...event, ...setByStore, address: text, before: state }]);
      }
    });

    it("are all stored, or none, if they are added together", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      await store.events.add(times(250, () => anEvent({ tenantId })));
      await store.events.add([]);
      expect(await listEvents(store, { tenantId })).toHaveLength(250);
      const wrong = Object.defineProperty(anEvent({ tenantId }), "kind", { get: throwOnRead });
      await expect(store.events.add([anEvent({ tenantId }), wrong])).rejects.toThrow();
      expect(await listEvents(store, { tenantId })).toHaveLength(250);
    });

    it("are visible to all processes that share the data", async () => {
      const { store, another } = subject();
      const other = await another();
      const event = anEvent();
      await store.events.add([event]);
      const items = [{ ...event, ...setByStore }];
      expect(await listEvents(other, { tenantId: event.tenantId })).toEqual(items);
    });

    it("are found by target, actor, kinds and time, alone and combined", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      const start = clock.now();
      const ids = times(3, () => randomUUID());
      const kinds = ["application.updated", "application.deleted"];
      const pick = (from: readonly string[], index: number) => must(from[index % from.length]);
      await addOneByOne(
        times(36, (index) => ({
          ...anEvent({ tenantId, kind: pick(kinds, index) }),
          target: { applicationId: pick(ids, index), sessionId: pick(ids, index >> 1) },
          ...(index % 4 > 0 && {
            actor: { applicationId: pick(ids, index >> 2), keyId: pick(ids, index) },
          }),
        })),
      );
      const all = await listEvents(store, { tenantId });
      expect(all).toHaveLength(36);
      expect(await store.events.count({ tenantId }, 35)).toBeUndefined();
      expect(await store.events.count({ tenantId, kinds: ["none"] }, 35)).toBeUndefined();
      expect(await store.events.count({ tenantId: randomUUID() }, 35)).toBe(0);

      const anyId = [undefined, ids[0], ids[2], randomUUID()];
      for (const target of anyId) {
        for (const actor of anyId) {
          for (const wanted of [undefined, kinds, kinds.slice(1), ["application"]]) {
            for (const [since, until] of [
              [],
              [start + 7],
              [undefined, start + 29],
              [start + 7, start + 29],
            ]) {
              const query = { tenantId, target, actor, kinds: wanted, since, until };
              const expected = all.filter((event) => matches(event, query));
              expect(await listEvents(store, { ...query, size: 15 })).toEqual(expected);
              expect(await store.events.count(query, 36)).toBe(expected.length);
            }
          }
        }
      }
    });

    it.each(["applicationId", "sessionId", "keyId"] as const)(
      "are found by the %s of their target or of their actor",
      async (name) => {
        const { store } = subject();
        const tenantId = randomUUID();
        const [target, actor] = [randomUUID(), randomUUID()];
        await store.events.add([
          anEvent({ tenantId, target: { [name]: target }, actor: { [name]: actor } }),
          anEvent({ tenantId, target: { [name]: randomUUID() }, actor: { [name]: randomUUID() } }),
        ]);
        for (const query of [{ target }, { actor }, { target, actor }]) {
          expect(await listEvents(store, { tenantId, ...query })).toHaveLength(1);
        }
        for (const query of [{ target: actor }, { actor: target }]) {
          expect(await listEvents(store, { tenantId, ...query })).toEqual([]);
        }
      },
    );

    it("are found by a principal that is their target or their actor", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      const start = clock.now();
      const ids = times(3, () => randomUUID());
      const idAt = (index: number) => must(ids[index % 3]);
      await addOneByOne(
        times(24, (index) => ({
          ...anEvent({ tenantId, kind: index % 4 === 0 ? "access.denied" : "application.updated" }),
          target: { applicationId: idAt(index), keyId: idAt(index >> 1) },
          ...(index % 3 > 0 && { actor: { sessionId: idAt(index >> 2) } }),
        })),
      );
      const all = await listEvents(store, { tenantId });
      for (const principal of [...ids, randomUUID()]) {
        for (const others of [
          {},
          { kinds: ["access.denied"] },
          { since: start + 5, until: start + 17 },
          { target: ids[1] },
          { actor: ids[1] },
          { target: ids[1], actor: ids[2] },
        ]) {
          const query = { tenantId, principal, ...others };
          const expected = all.filter((event) => matches(event, query));
          expect(await listEvents(store, { ...query, size: 4 })).toEqual(expected);
          expect(await store.events.count(query, 24)).toBe(expected.length);
        }
      }
      const found = all.filter((event) => matches(event, { tenantId, principal: ids[0] })).length;
      const query = { tenantId, principal: ids[0] };
      expect(await store.events.count(query, found)).toBe(found);
      expect(await store.events.count(query, found - 1)).toBeUndefined();
    });

    it("are found by request id, address, method and reason, alone and combined", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const update = "latchkey.v1.ApplicationService/UpdateApplication";
      const target = { applicationId: randomUUID() };
      const wanted = {
        requestId: "abc.1",
        address: "2001:db8::7",
        method: update,
        reason: "expired",
      };
      const other = { requestId: "abc.12", address: "2001:db8::", reason: "several" };
      await addOneByOne([
        anEvent({ tenantId, target, ...wanted }),
        anEvent({ tenantId, target, ...wanted, ...other }),
        anEvent({ tenantId, target, method: "latchkey.v1.ApplicationService/GetApplication" }),
        anEvent({ tenantId }),
      ]);
      const all = await listEvents(store, { tenantId });
      const ids = [{}, { target: target.applicationId }, { principal: target.applicationId }];
      for (const byId of ids) {
        for (const [name, value] of Object.entries(wanted)) {
          for (const query of [
            { tenantId, ...byId, [name]: value },
            { tenantId, ...byId, ...other, [name]: value },
            { tenantId, ...byId, ...wanted, [name]: `${value}x` },
          ]) {
            const expected = all.filter((event) => matches(event, query));
            expect(await listEvents(store, query)).toEqual(expected);
            expect(await store.events.count(query, 9)).toBe(expected.length);
          }
        }
      }
      const byName = async (method: string) => listEvents(store, { tenantId, method });
      expect(await byName("UpdateApplication")).toEqual(await byName(update));
      expect(await byName("UpdateApplication")).toHaveLength(2);
      expect(await byName("Application")).toEqual([]);
    });

    it("are found by their id within their tenant", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      await addOneByOne(numbered(5, { tenantId }));
      const all = await listEvents(store, { tenantId });
      for (const event of all) {
        expect(await store.events.find(tenantId, event.id)).toEqual(event);
        expect(await store.events.find(randomUUID(), event.id)).toBeUndefined();
      }
      expect(await store.events.find(tenantId, randomUUID())).toBeUndefined();
    });

    it("are found by their id if another clock created it", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      await addOneByOne(numbered(3, { tenantId }));
      const imported = [-9, -1, 0, 1, 9].map((minutes) =>
        copyEvent({
          ...aFullEvent({ tenantId }),
          id: newId(clock.now() + minutes * 60_000),
          at: clock.now(),
        }),
      );
      await store.transfer.importEvents(imported, { replace: false, dryRun: false });
      for (const event of imported) {
        expect(await store.events.find(tenantId, event.id)).toEqual(event);
      }
    });

    it("are listed once, even if an id matches twice", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const id = randomUUID();
      const principal = { applicationId: id, sessionId: id, keyId: id };
      await store.events.add([anEvent({ tenantId, target: principal, actor: principal })]);
      for (const query of [
        { principal: id },
        { target: id },
        { actor: id },
        { target: id, actor: id },
      ]) {
        expect(await listEvents(store, { tenantId, ...query })).toHaveLength(1);
      }
    });

    it("are filtered by since (inclusive) and until (exclusive), to the millisecond", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      const start = clock.now();
      await addOneByOne(numbered(5, { tenantId }));
      const listed = async (since?: number, until?: number) =>
        requestIds(await listEvents(store, { tenantId, since, until }));
      expect(await listed(start + 3)).toEqual(["request 4", "request 3"]);
      expect(await listed(undefined, start + 2)).toEqual(["request 1", "request 0"]);
      expect(await listed(start + 1, start + 3)).toEqual(["request 2", "request 1"]);
      expect(await listed(start + 2, start + 2)).toEqual([]);
      expect(await listed(start + 3, start + 1)).toEqual([]);
      expect(await listed(start + 5)).toEqual([]);
      expect(await listed(0, start)).toEqual([]);
    });

    it("are not listed for another tenant", async () => {
      const { store } = subject();
      const [mine, foreign] = [randomUUID(), randomUUID()];
      const principal = { applicationId: randomUUID() };
      const event = aFullEvent({ tenantId: foreign, target: principal, actor: principal });
      await store.events.add([event]);
      const { applicationId: id } = principal;
      const { kind, requestId } = event;
      for (const query of [
        {},
        { principal: id },
        { target: id },
        { actor: id },
        { kinds: [kind] },
        { requestId },
      ]) {
        expect(await store.events.list({ tenantId: mine, size: 9, ...query })).toEqual({
          items: [],
        });
        expect(await listEvents(store, { tenantId: foreign, ...query })).toHaveLength(1);
      }
    });
  });

  describe("a page of events", () => {
    const query = { size: 4 };

    it("has a cursor for the next page, except the last", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      await addOneByOne(numbered(8, { tenantId }));
      const first = await store.events.list({ ...query, tenantId });
      expect(must(first.next).length).toBeLessThanOrEqual(48);
      expect(first.items).toHaveLength(4);
      const second = await store.events.list({ ...query, tenantId, after: first.next });
      expect(requestIds(second.items)).toEqual([
        "request 3",
        "request 2",
        "request 1",
        "request 0",
      ]);
      expect(second.next).toBeUndefined();
    });

    it("continues after the previous page despite new events", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const target = { applicationId: randomUUID() };
      await addOneByOne(numbered(7, { tenantId, target }));
      const filtered = { ...query, tenantId, target: target.applicationId };
      const { items, next } = await store.events.list(filtered);
      await addOneByOne([anEvent({ tenantId, target }), anEvent({ tenantId, target })]);
      const following = await store.events.list({ ...filtered, after: next });
      expect(requestIds([...items, ...following.items])).toEqual(
        times(7, (index) => `request ${6 - index}`),
      );
      expect(following.next).toBeUndefined();
    });

    it("has each event once, even if many have the same time", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const events = numbered(30, { tenantId });
      await Promise.all(events.map((event) => store.events.add([event])));
      const listed = requestIds(await listEvents(store, { tenantId, size: 4 }));
      expect(listed.sort()).toEqual(requestIds(events).sort());
    });

    it("respects the time filter from any cursor", async () => {
      const { store, clock } = subject();
      const tenantId = randomUUID();
      const start = clock.now();
      await addOneByOne(numbered(12, { tenantId }));
      const { next } = await store.events.list({ ...query, tenantId });
      const filtered = { ...query, tenantId, after: next, since: start + 2, until: start + 6 };
      const { items } = await store.events.list(filtered);
      expect(requestIds(items)).toEqual(times(4, (index) => `request ${5 - index}`));
    });
  });

  describe("a follower of the events of a tenant", () => {
    it("gets an empty batch at once, and no earlier events", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      await store.events.add([anEvent({ tenantId })]);
      const follower = follow(store, tenantId);
      const first = await follower.next();
      expect(first).toEqual({ events: [], missed: false, position: expect.any(String) });
      const event = aFullEvent({ tenantId });
      await store.events.add([event]);
      const second = await follower.next();
      expect(second).toMatchObject({ events: [{ ...event, ...setByStore }], missed: false });
      expect(second.events).toEqual(
        await listEvents(store, { tenantId, size: 1 }).then((all) => all.slice(0, 1)),
      );
    });

    it("gets each event once, in the same order as other followers", async () => {
      const { store, another } = subject();
      const other = await another();
      const tenantId = randomUUID();
      const followers = [follow(store, tenantId), follow(other, tenantId)];
      for (const follower of followers) {
        await follower.next();
      }
      const events = numbered(30, { tenantId });
      await Promise.all(
        events.map((event, index) => (index % 2 ? store : other).events.add([event])),
      );
      await store.events.add([anEvent({ tenantId, kind: "last" })]);
      const [received = [], receivedByOther] = await Promise.all(
        followers.map((follower) => follower.until(({ kind }) => kind === "last")),
      );
      expect(requestIds(received.slice(0, -1)).sort()).toEqual(requestIds(events).sort());
      expect(receivedByOther).toEqual(received);
    });

    it("gets events in the order in which they happened", async () => {
      const { store, another } = subject();
      const writers = [store, await another()];
      const tenantId = randomUUID();
      const follower = follow(store, tenantId);
      await follower.next();
      const events = numbered(20, { tenantId });
      for (const [index, event] of events.entries()) {
        await must(writers[index % 2]).events.add([event]);
      }
      const received = await follower.until(({ requestId }) => requestId === "request 19");
      expect(requestIds(received)).toEqual(requestIds(events));
    });

    it("gets nothing of other tenants", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const follower = follow(store, tenantId);
      await follower.next();
      await store.events.add([anEvent(), anEvent({ tenantId, kind: "last" }), anEvent()]);
      expect(await follower.until(({ kind }) => kind === "last")).toHaveLength(1);
    });

    it("gets an empty batch as a heartbeat", async () => {
      const { store } = subject();
      const follower = follow(store, randomUUID(), { heartbeat: 20 });
      for (let beats = 0; beats < 3; beats++) {
        expect(await follower.next()).toMatchObject({ events: [], missed: false });
      }
    });

    it("stops when the signal aborts, waiting or not", () =>
      expectToStopOnAbort((options) => follow(subject().store, randomUUID(), options)));
  });

  describe("a follower of events that resumes from a position", () => {
    it("gets everything since then, and nothing earlier", async () => {
      const { store, another } = subject();
      const tenantId = randomUUID();
      const first = follow(store, tenantId);
      await first.next();
      await store.events.add([anEvent({ tenantId, kind: "received" })]);
      await first.until(({ kind }) => kind === "received");
      first.stop();
      const events = numbered(5, { tenantId });
      for (const event of events) {
        await store.events.add([event, anEvent()]);
      }
      for (const one of [store, await another()]) {
        const resumed = follow(one, tenantId, { after: first.position() });
        const received = await resumed.until(({ requestId }) => requestId === "request 4");
        expect(requestIds(received)).toEqual(requestIds(events));
      }
    });

    it("can resume from an empty batch", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const idle = follow(store, tenantId, { heartbeat: 1 });
      await idle.next();
      await store.events.add([anEvent()]);
      await idle.next();
      const resumed = follow(store, tenantId, { after: idle.position() });
      expect(await resumed.next()).toMatchObject({ events: [], missed: false });
      await store.events.add([anEvent({ tenantId, kind: "last" })]);
      expect(await resumed.until(({ kind }) => kind === "last")).toHaveLength(1);
    });

    it("gets all events in order, at most a hundred per batch", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      const first = follow(store, tenantId);
      await first.next();
      const events = numbered(350, { tenantId });
      for (let start = 0; start < events.length; start += 70) {
        await store.events.add(
          events.slice(start, start + 70).flatMap((event) => [event, anEvent()]),
        );
      }
      const resumed = follow(store, tenantId, { after: first.position() });
      const received: EventRecord[] = [];
      while (received.length < events.length) {
        const { events: some, missed } = await resumed.next();
        expect(some.length).toBeLessThanOrEqual(100);
        expect(missed).toBe(false);
        received.push(...some);
      }
      expect(requestIds(received)).toEqual(requestIds(events));
      expect(received.at(-1)).toEqual((await store.events.list({ tenantId, size: 1 })).items[0]);
    });

    it("reports missed events if the position is invalid, and gets later events", async () => {
      const { store } = subject();
      const tenantId = randomUUID();
      await store.events.add([anEvent({ tenantId })]);
      for (const after of ["", "nonsense", "-1", "1e3", "9".repeat(400)]) {
        const follower = follow(store, tenantId, { after });
        expect((await follower.next()).missed).toBe(true);
        await store.events.add([anEvent({ tenantId, kind: after })]);
        await follower.until(({ kind }) => kind === after);
      }
    });
  });
}

function throwOnRead(): never {
  throw new Error("cannot be read");
}
