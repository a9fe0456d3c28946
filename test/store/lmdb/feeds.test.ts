import { randomUUID } from "node:crypto";
import { getEventListeners } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { open } from "lmdb";
import { changeRetention } from "../../../src/store/port/changes.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { EventRecord } from "../../../src/store/port/events.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";
import {
  aFullEvent,
  aLargeEvent,
  anEvent,
  day,
  listEvents,
} from "../../contract/store/event-fixtures.js";
import {
  aGrant,
  anApplication,
  aSession,
  createBoth,
  hour,
  must,
  times,
} from "../../contract/store/fixtures.js";
import { anAnswer, anAnswerId, keepAnswer } from "../../contract/store/trailed-changes.js";
import { useEventFollowers, useFollowers } from "../../support/api/followers.js";
import { createTestClock } from "../../support/clock.js";
import { repetitions } from "../../support/jest/suite.js";
import { openChangeLog } from "../../support/lmdb/change-log.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { scriptCommand, useChildren } from "../../support/service/child-process.js";
import { until } from "../../support/until.js";

const folder = useLmdbFolder();
const start = useChildren();
const follow = useFollowers();
const followEvents = useEventFollowers();

/** Changes an application of a tenant of its own, so many times. */
async function makeChanges(store: Store, count: number): Promise<void> {
  const { id, tenantId } = await store.applications.create(anApplication());
  const change = () => ({ modifiedBy: id });
  await Promise.all(times(count, () => store.applications.update(tenantId, id, change)));
}

/** Opens a store that sweeps, and a look at the numbers of its log. */
async function openSwept() {
  const { now, advance } = createTestClock();
  const store = await folder.open({ clock: now, sweepInterval: 5 });
  const log = openChangeLog(folder.path());
  const numbers = () => log.entries().map(({ number }) => number);
  const untilNumbersAre = async (expected: number[]) => {
    await until(async () => String(numbers()) === String(expected));
  };
  return { store, advance, numbers, untilNumbersAre, close: log.close };
}

describe("a change in LMDB", () => {
  it("is reported with its time by the store's clock, an expiry with its own time", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now, sweepInterval: 5 });
    const { application, session } = await createBoth(store);
    const { id, tenantId } = application;
    const start = now();
    const expiresAt = start + 60;
    const ending = await store.applications.create(anApplication({ tenantId, expiresAt }));
    const short = aSession(application, { ttl: 50 });
    await store.sessions.create(short);
    const follower = follow(store, tenantId);
    await follower.next();

    advance(10);
    await store.applications.update(tenantId, id, () => ({ modifiedBy: id }));
    advance(10);
    await store.sessions.authorize(aGrant(session));
    advance(80);
    const isLast = ({ applicationId }: { applicationId: string }) => applicationId === ending.id;
    const changes = await follower.until(isLast);
    await store.applications.delete(tenantId, id);
    changes.push(...(await follower.next()).changes);
    expect(changes).toEqual([
      { kind: "updated", applicationId: id, at: start + 10 },
      { kind: "authorized", applicationId: id, sessionId: session.id, at: start + 20 },
      { kind: "expired", applicationId: id, sessionId: short.id, at: start + 50 },
      { kind: "expired", applicationId: ending.id, at: start + 60 },
      { kind: "deleted", applicationId: id, at: start + 100 },
    ]);
  });

  it("that was swept late is reported to a waiting follower", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now });
    const expiresAt = now() + 1;
    const { id, tenantId } = await store.applications.create(anApplication({ expiresAt }));
    const follower = follow(store, tenantId);
    await follower.next();
    advance(2 * changeRetention);
    await folder.open({ clock: now, sweepInterval: 5 });
    const changes = [{ kind: "expired", applicationId: id, at: expiresAt }];
    expect(await follower.next()).toMatchObject({ changes, missed: false });
  });

  it("of a tenant is found among many of others, in bounded batches", async () => {
    const store = await folder.open();
    const { application } = await createBoth(store);
    const { id, tenantId } = application;
    await makeChanges(store, 2_500);
    await store.applications.delete(tenantId, id);
    const follower = follow(store, tenantId, { after: "0" });
    const first = await follower.next();
    expect(first).toMatchObject({ changes: [], missed: false, position: "1000" });
    expect(first.completeUntil).toBeUndefined();
    const second = await follower.next();
    expect(second).toMatchObject({ changes: [{ kind: "deleted" }], position: "2501" });
    expect(second.completeUntil).toBeDefined();
  });

  it("comes in the same batches to waiting and resuming followers", async () => {
    const store = await folder.open();
    const { application } = await createBoth(store);
    const { id, tenantId } = application;
    const follower = follow(store, tenantId);
    const { position } = await follower.next();
    const waited = follower.next();
    await makeChanges(store, 100);
    await store.applications.delete(tenantId, id);
    const told = { changes: [{ kind: "deleted" }], missed: false, position: "101" };
    expect(await waited).toMatchObject(told);
    expect(await follow(store, tenantId, { after: position }).next()).toMatchObject(told);
  });
});

describe("the log of changes in LMDB", () => {
  it("prunes old entries, but never the newest, and continues its numbers", async () => {
    const { store, advance, numbers, untilNumbersAre, close } = await openSwept();
    await makeChanges(store, 450);
    advance(changeRetention);
    await makeChanges(store, 2);
    expect(numbers()).toHaveLength(452);
    advance(1);
    await untilNumbersAre([451, 452]);
    advance(changeRetention);
    await untilNumbersAre([452]);
    await makeChanges(store, 2);
    await untilNumbersAre([453, 454]);
    await close();
  });

  it("continues after it is opened again", async () => {
    const store = await folder.open();
    const { application } = await createBoth(store);
    const { tenantId, id } = application;
    const first = follow(store, tenantId);
    await first.next();
    await store.applications.update(tenantId, id, () => ({ modifiedBy: id }));
    await first.next();
    first.stop();
    await store.close();
    const next = await folder.open();
    const second = follow(next, tenantId, { after: first.position() });
    expect(await second.next()).toMatchObject({ changes: [], missed: false });
    await next.applications.delete(tenantId, id);
    expect(await second.next()).toMatchObject({ changes: [{ kind: "deleted" }], position: "2" });
  });

  it("reports missed changes to a follower that is ahead of it", async () => {
    const store = await folder.open();
    const { application } = await createBoth(store);
    await makeChanges(store, 3);
    const follower = follow(store, application.tenantId, { after: "4" });
    expect(await follower.next()).toMatchObject({ changes: [], missed: true, position: "3" });
    const level = follow(store, application.tenantId, { after: "3" });
    expect(await level.next()).toMatchObject({ changes: [], missed: false, position: "3" });
  });

  it("reports missed changes to a follower whose next change was pruned", async () => {
    const { store, advance, untilNumbersAre, close } = await openSwept();
    const { tenantId } = anApplication();
    await makeChanges(store, 3);
    advance(changeRetention + 1);
    await makeChanges(store, 1);
    await untilNumbersAre([4]);
    const late = follow(store, tenantId, { after: "2" });
    expect(await late.next()).toMatchObject({ changes: [], missed: true, position: "4" });
    const early = follow(store, tenantId, { after: "3" });
    expect(await early.next()).toMatchObject({ changes: [], missed: false, position: "4" });
    await close();
  });
});

describe.each([
  ["changes", follow],
  ["events", followEvents],
] as const)("one who follows %s in LMDB", (_what, follow) => {
  it("throws when the store is closed, waiting or not", async () => {
    const store = await folder.open();
    const waits = follow(store, anApplication().tenantId);
    const pauses = follow(store, anApplication().tenantId);
    await waits.next();
    await pauses.next();
    const waited = waits.next().catch((error) => error);
    await store.close();
    expect(await waited).toBeInstanceOf(StoreUnavailable);
    await expect(pauses.next()).rejects.toBeInstanceOf(StoreUnavailable);
    const late = follow(store, anApplication().tenantId);
    await expect(late.next()).rejects.toBeInstanceOf(StoreUnavailable);
  });

  it("listens to the signal only while waiting", async () => {
    const store = await folder.open();
    const controller = new AbortController();
    const { signal } = controller;
    const listeners = () => getEventListeners(signal, "abort").length;
    const { tenantId } = anApplication();
    const follower = follow(store, tenantId, { signal, heartbeat: 1 });
    for (let beats = 0; beats < 5; beats++) {
      await follower.next();
      expect(listeners()).toBe(0);
    }
    const waits = follow(store, tenantId, { signal });
    await waits.next();
    const waiting = waits.step();
    await new Promise(setImmediate);
    expect(listeners()).toBe(1);
    controller.abort();
    await waiting;
    expect(listeners()).toBe(0);
  });
});

const retention = 30 * day;

/** Opens a store that sweeps, and a look behind it at its tables. */
async function openSweptEvents() {
  const { now, advance } = createTestClock();
  const store = await folder.open({ clock: now, sweepInterval: 5, eventRetention: retention });
  const database = open({ path: folder.path(), noSubdir: false, overlappingSync: false });
  const byKey = { keyEncoding: "binary", encoding: "binary" } as const;
  const tables = ["events", "event-index", "responses", "response-expirations"].map((name) =>
    database.openDB<Buffer, Buffer>({ name, ...byKey }),
  );
  const look = () => {
    database.resetReadTxn();
    return tables.map((table) => table.getCount());
  };
  /** How many rows there are of events, of their index, of answers and of their ends. */
  const untilRowsAre = async (expected: number[]) => {
    await until(async () => String(look()) === String(expected));
  };
  return { store, advance, untilRowsAre, close: () => database.close() };
}

async function addEvents(store: Store, count: number, tenantId?: string): Promise<void> {
  await store.events.add(times(count, () => anEvent({ ...(tenantId && { tenantId }) })));
}

describe("events in LMDB", () => {
  it("are pruned with their index, except the newest, and numbers continue", async () => {
    const { store, advance, untilRowsAre, close } = await openSweptEvents();
    const tenantId = randomUUID();
    const follower = followEvents(store, tenantId);
    await follower.next();
    await store.events.add(times(450, () => aFullEvent({ tenantId })));
    await untilRowsAre([450, 450 * 7, 0, 0]);
    advance(retention);
    await addEvents(store, 2, tenantId);
    await untilRowsAre([452, 450 * 7 + 2 * 3, 0, 0]);
    advance(1);
    await untilRowsAre([2, 6, 0, 0]);
    expect(await listEvents(store, { tenantId })).toHaveLength(2);
    advance(retention);
    await untilRowsAre([1, 3, 0, 0]);
    await addEvents(store, 1, tenantId);
    await untilRowsAre([1, 3, 0, 0]);
    const last = followEvents(store, tenantId, { after: "452" });
    expect(await last.next()).toMatchObject({ events: [{}], missed: false, position: "453" });
    await close();
  });

  it("that were pruned are reported as missed to resuming followers, which get the rest", async () => {
    const { store, advance, untilRowsAre, close } = await openSweptEvents();
    const tenantId = randomUUID();
    await addEvents(store, 3, tenantId);
    advance(retention + 1);
    await addEvents(store, 2, tenantId);
    await untilRowsAre([2, 6, 0, 0]);
    const late = followEvents(store, tenantId, { after: "2" });
    expect(await late.next()).toMatchObject({ events: [], missed: true, position: "3" });
    const told = { events: [{}, {}], missed: false, position: "5" };
    expect(await late.next()).toMatchObject(told);
    expect(await followEvents(store, tenantId, { after: "3" }).next()).toMatchObject(told);
    await close();
  });

  it("are reported as missed to a follower that is ahead", async () => {
    const store = await folder.open();
    await addEvents(store, 3);
    const follower = followEvents(store, randomUUID(), { after: "4" });
    expect(await follower.next()).toMatchObject({ events: [], missed: true, position: "3" });
    const level = followEvents(store, randomUUID(), { after: "3" });
    expect(await level.next()).toMatchObject({ events: [], missed: false, position: "3" });
  });

  it("of a tenant are found among many of others, in bounded batches", async () => {
    const store = await folder.open();
    const tenantId = randomUUID();
    await addEvents(store, 2_500);
    await addEvents(store, 150, tenantId);
    const follower = followEvents(store, tenantId, { after: "0" });
    const batches = [await follower.next(), await follower.next(), await follower.next()];
    expect(batches.map(({ events, position }) => [events.length, position])).toEqual([
      [0, "1000"],
      [100, "2600"],
      [50, "2650"],
    ]);
  });

  it("of other tenants, if large, are skipped in small batches", async () => {
    const store = await folder.open();
    const tenantId = randomUUID();
    for (let added = 0; added < 4; added++) {
      await store.events.add([aLargeEvent(500)]);
    }
    await addEvents(store, 1, tenantId);
    const follower = followEvents(store, tenantId, { after: "0" });
    expect(await follower.next()).toMatchObject({ events: [], position: "2" });
    expect(await follower.next()).toMatchObject({ events: [{ tenantId }], position: "5" });
  });

  it("are pruned even if they are large", async () => {
    const { store, advance, untilRowsAre, close } = await openSweptEvents();
    for (let added = 0; added < 4; added++) {
      await store.events.add([aLargeEvent(1_000)]);
    }
    advance(retention + 1);
    await addEvents(store, 1);
    await untilRowsAre([1, 3, 0, 0]);
    await close();
  });

  it("do not block the event loop while few are searched among many", async () => {
    const store = await folder.open();
    const { tenantId, target } = anEvent();
    await store.events.add(times(1_500, () => anEvent({ tenantId, target })));
    let turns = 0;
    const count = () => {
      turns++;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    const query = { tenantId, target: target.applicationId, kind: "rare", size: 1 };
    expect(await store.events.list(query)).toEqual({ items: [] });
    clearImmediate(immediate);
    expect(turns).toBeGreaterThanOrEqual(7);
  });

  it("are listed by time even if the clock was set back", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now });
    const { tenantId } = anEvent();
    const first = now();
    const moments = [0, 50, -20, 10, -30];
    for (const moment of moments) {
      advance(first + moment - now());
      await addEvents(store, 1, tenantId);
    }
    const list = async (since?: number, until?: number) => {
      const events = await listEvents(store, { tenantId, since, until, size: 2 });
      return events.map(({ at }) => at - first);
    };
    expect(await list()).toEqual([50, 10, 0, -20, -30]);
    expect(await list(first - 20, first + 10)).toEqual([0, -20]);
    const follower = followEvents(store, tenantId, { after: "0" });
    const { events } = await follower.next();
    expect(events.map(({ at }) => at - first)).toEqual(moments);
  });

  it("return an empty page for an invalid cursor", async () => {
    const store = await folder.open();
    const { tenantId } = anEvent();
    await addEvents(store, 3, tenantId);
    for (const after of ["", "nonsense", "-1", "1e3-1", "9".repeat(48)]) {
      expect(await store.events.list({ tenantId, size: 2, after })).toEqual({ items: [] });
    }
  });

  it("of other processes reach a waiting follower", async () => {
    const store = await folder.open();
    const tenantId = randomUUID();
    const follower = followEvents(store, tenantId);
    await follower.next();
    start(scriptCommand("test/support/lmdb/child.ts", "addEvent", folder.path(), tenantId));
    expect(await follower.next()).toMatchObject({ events: [{ tenantId }], missed: false });
  });
});

describe("stored responses in LMDB", () => {
  it("are removed after they expire, and nothing else is", async () => {
    const { store, advance, untilRowsAre, close } = await openSweptEvents();
    const ids = times(450, anAnswerId);
    await Promise.all(ids.map((id) => keepAnswer(store, id, anAnswer())));
    const staying = anAnswerId();
    await keepAnswer(store, staying, anAnswer({ ttl: hour + 1 }));
    await untilRowsAre([0, 0, 451, 451]);
    advance(hour);
    await untilRowsAre([0, 0, 1, 1]);
    expect(await store.answers.find(staying)).toBeDefined();
    await close();
  });

  it("leave nothing behind of the responses that they replace", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now });
    const id = anAnswerId();
    await keepAnswer(store, id, anAnswer());
    advance(hour);
    await keepAnswer(store, id, anAnswer({ ttl: 3 * hour }));
    const { untilRowsAre, close } = await openSweptEvents();
    await untilRowsAre([0, 0, 1, 1]);
    await close();
    advance(2 * hour);
    expect(await store.answers.find(id)).toBeDefined();
  });
});

describe("LMDB after a process was killed", () => {
  it("has each change with its event, and no event without its change", async () => {
    const tenantId = randomUUID();
    const lines: Record<string, string | number>[] = [];
    for (let round = 0; round < repetitions({ quick: 2, full: 4 }); round++) {
      const writer = start(
        scriptCommand("test/support/lmdb/child.ts", "writeAuditLog", folder.path(), tenantId),
      );
      // Eight workers write six lines each before the first delete.
      await writer.line(50);
      // Anywhere in its work.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
      await writer.kill();
      lines.push(...writer.lines());

      const store = await folder.open();
      const eventsOf = groupByTarget(await listEvents(store, { tenantId }));
      const found = await findAll(store, [...eventsOf.keys()]);
      expect(await countOf(store, tenantId)).toBe(found.size);
      for (const [id, events] of eventsOf) {
        expectWhole(events, found.get(id));
      }
      for (const { updated, to = 0, deleted } of lines) {
        const kinds = must(eventsOf.get(String(updated ?? deleted))).map(({ kind }) => kind);
        expect(kinds.length).toBeGreaterThan(Number(to));
        expect(deleted === undefined || kinds.includes("deleted")).toBe(true);
      }
      await store.close();
    }
    expect(lines.some(({ deleted }) => deleted)).toBe(true);
  });

  /** All events of an application, oldest first. */
  function groupByTarget(events: readonly EventRecord[]): Map<string, EventRecord[]> {
    const groups = new Map<string, EventRecord[]>();
    for (const event of [...events].reverse()) {
      const id = must(event.target.applicationId);
      groups.set(id, [...(groups.get(id) ?? []), event]);
    }
    return groups;
  }

  async function findAll(store: Store, ids: readonly string[]) {
    const found = new Map<string, ApplicationRecord>();
    for (const record of await store.applications.findMany(ids)) {
      if (record) {
        found.set(record.id, record);
      }
    }
    return found;
  }

  async function countOf({ applications }: Store, tenantId: string) {
    return (await applications.list({ tenantId, size: 1, from: { page: 1 } })).total;
  }

  /** The last event of an application tells what it is, and those before it how it came to be that. */
  function expectWhole(events: readonly EventRecord[], application: ApplicationRecord | undefined) {
    const isDeleted = events.at(-1)?.kind === "deleted";
    const changes = isDeleted ? events.slice(0, -1) : events;
    expect(changes.map(({ kind, after }) => [kind, after?.name])).toEqual(
      changes.map((_, index) => [index === 0 ? "created" : "updated", String(index)]),
    );
    expect(application?.name).toBe(isDeleted ? undefined : changes.at(-1)?.after?.name);
  }
});
