import { randomUUID } from "node:crypto";
import { getEventListeners } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { open } from "lmdb";
import { changeRetention } from "../../../src/store/port/changes.js";
import { StoreUnavailable } from "../../../src/store/port/errors.js";
import type { EventRecord } from "../../../src/store/port/events.js";
import type { ApplicationRecord } from "../../../src/store/port/records.js";
import { anIdempotencyId, aResponse, storeResponse } from "../../contract/store/audited-changes.js";
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
  createWithSession,
  hour,
  must,
  times,
} from "../../contract/store/fixtures.js";
import { useEventFollowers, useFollowers } from "../../support/api/followers.js";
import { createTestClock } from "../../support/clock.js";
import { repetitions } from "../../support/jest/suite.js";
import { useLmdbFolder, useLmdbProcesses } from "../../support/lmdb/folder.js";
import { useChildren } from "../../support/service/child-process.js";
import { audit } from "../../support/store/audit.js";
import type { OperableStore } from "../../support/store/operations.js";
import { until } from "../../support/until.js";

const folder = useLmdbFolder();
const start = useChildren();
const { child } = useLmdbProcesses(folder);
const follow = useFollowers();
const followEvents = useEventFollowers();

/** Updates an application of a new tenant several times. */
async function updateRepeatedly(store: OperableStore, count: number): Promise<void> {
  const { id, tenantId } = await store.applications.create(anApplication(), audit.created);
  const change = () => ({ modifiedBy: id });
  await Promise.all(
    times(count, () => store.applications.update(tenantId, id, change, audit.updated)),
  );
}

describe("a change in LMDB", () => {
  it("is reported with its time by the store's clock, an expiry with its own time", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now, sweepInterval: 5 });
    const { application, session } = await createWithSession(store);
    const { id, tenantId } = application;
    const start = now();
    const expiresAt = start + 60;
    const expiring = await store.applications.create(
      anApplication({ tenantId, expiresAt }),
      audit.created,
    );
    const short = aSession(application, { ttl: 50 });
    await store.sessions.create(short);
    const follower = follow(store, tenantId);
    await follower.next();

    advance(10);
    await store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
    advance(10);
    await store.sessions.authorize(aGrant(session), audit.authorized);
    advance(80);
    const isLast = ({ applicationId }: { applicationId: string }) => applicationId === expiring.id;
    const changes = await follower.until(isLast);
    await store.applications.delete(tenantId, id, audit.deleted);
    changes.push(...(await follower.next()).changes);
    expect(changes).toEqual([
      { kind: "updated", applicationId: id, at: start + 10 },
      { kind: "authorized", applicationId: id, sessionId: session.id, at: start + 20 },
      { kind: "expired", applicationId: id, sessionId: short.id, at: start + 50 },
      { kind: "expired", applicationId: expiring.id, at: start + 60 },
      { kind: "deleted", applicationId: id, at: start + 100 },
    ]);
  });

  it("is reported to a waiting follower even if it was swept late", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now });
    const expiresAt = now() + 1;
    const { id, tenantId } = await store.applications.create(
      anApplication({ expiresAt }),
      audit.created,
    );
    const follower = follow(store, tenantId);
    await follower.next();
    advance(2 * changeRetention);
    await folder.open({ clock: now, sweepInterval: 5 });
    const changes = [{ kind: "expired", applicationId: id, at: expiresAt }];
    expect(await follower.next()).toMatchObject({ changes, missed: false });
  });

  it("is found among many of other tenants, in bounded batches", async () => {
    const store = await folder.open();
    const { application } = await createWithSession(store);
    const { id, tenantId } = application;
    await updateRepeatedly(store, 2_500);
    await store.applications.delete(tenantId, id, audit.deleted);
    const follower = follow(store, tenantId, { after: "0-0" });
    const first = await follower.next();
    expect(first).toMatchObject({ changes: [], missed: false, position: "1000-0" });
    expect(first.completeUntil).toBeUndefined();
    const second = await follower.next();
    expect(second).toMatchObject({ changes: [{ kind: "deleted" }], position: "2503-0" });
    expect(second.completeUntil).toBeDefined();
  });

  it("is received in the same batches by waiting and resuming followers", async () => {
    const store = await folder.open();
    const { application } = await createWithSession(store);
    const { id, tenantId } = application;
    const follower = follow(store, tenantId);
    const { position } = await follower.next();
    const pending = follower.next();
    await updateRepeatedly(store, 100);
    await store.applications.delete(tenantId, id, audit.deleted);
    const expected = { changes: [{ kind: "deleted" }], missed: false, position: "103-0" };
    expect(await pending).toMatchObject(expected);
    expect(await follow(store, tenantId, { after: position }).next()).toMatchObject(expected);
  });
});

describe("the feed of changes in LMDB", () => {
  it("continues after it is opened again", async () => {
    const store = await folder.open();
    const { application } = await createWithSession(store);
    const { tenantId, id } = application;
    const first = follow(store, tenantId);
    await first.next();
    await store.applications.update(tenantId, id, () => ({ modifiedBy: id }), audit.updated);
    await first.next();
    first.stop();
    await store.close();
    const next = await folder.open();
    const second = follow(next, tenantId, { after: first.position() });
    expect(await second.next()).toMatchObject({ changes: [], missed: false });
    await next.applications.delete(tenantId, id, audit.deleted);
    expect(await second.next()).toMatchObject({ changes: [{ kind: "deleted" }], position: "3-0" });
  });

  it("reports missed changes to a follower that is ahead of it", async () => {
    const store = await folder.open();
    const { application } = await createWithSession(store);
    await updateRepeatedly(store, 3);
    const follower = follow(store, application.tenantId, { after: "6-0" });
    expect(await follower.next()).toMatchObject({ changes: [], missed: true, position: "5-0" });
    const current = follow(store, application.tenantId, { after: "5-0" });
    expect(await current.next()).toMatchObject({ changes: [], missed: false, position: "5-0" });
  });

  it("reports missed changes to a follower whose next change was pruned", async () => {
    const { store, advance, waitForRows, close } = await openSweepingEvents();
    const { tenantId } = anApplication();
    await updateRepeatedly(store, 3);
    advance(retention + 1);
    await updateRepeatedly(store, 1);
    await waitForRows([2, 4, 0, 0]);
    const late = follow(store, tenantId, { after: "2-0" });
    expect(await late.next()).toMatchObject({ changes: [], missed: true, position: "6-0" });
    const early = follow(store, tenantId, { after: "4-0" });
    expect(await early.next()).toMatchObject({ changes: [], missed: false, position: "6-0" });
    await close();
  });
});

describe.each([
  ["changes", follow],
  ["events", followEvents],
] as const)("a follower of %s in LMDB", (_, follow) => {
  it("throws when the store is closed, waiting or not", async () => {
    const store = await folder.open();
    const waiting = follow(store, anApplication().tenantId);
    const idle = follow(store, anApplication().tenantId);
    await waiting.next();
    await idle.next();
    const pending = waiting.next().catch((error) => error);
    await store.close();
    expect(await pending).toBeInstanceOf(StoreUnavailable);
    await expect(idle.next()).rejects.toBeInstanceOf(StoreUnavailable);
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
    const waiting = follow(store, tenantId, { signal });
    await waiting.next();
    const pending = waiting.step();
    await new Promise(setImmediate);
    expect(listeners()).toBe(1);
    controller.abort();
    await pending;
    expect(listeners()).toBe(0);
  });
});

const retention = 30 * day;

/** Opens a store that sweeps, and its tables. */
async function openSweepingEvents() {
  const { now, advance } = createTestClock();
  const store = await folder.open({ clock: now, sweepInterval: 5, eventRetention: retention });
  const database = open({ path: folder.path(), noSubdir: false, overlappingSync: false });
  const byKey = { keyEncoding: "binary", encoding: "binary" } as const;
  const tables = ["events", "event-index", "responses", "response-expirations"].map((name) =>
    database.openDB<Buffer, Buffer>({ name, ...byKey }),
  );
  const countRows = () => {
    database.resetReadTxn();
    return tables.map((table) => table.getCount());
  };
  /** Waits for row counts of events, event index, responses and response expirations. */
  const waitForRows = async (expected: number[]) => {
    await until(async () => String(countRows()) === String(expected));
  };
  return { store, advance, waitForRows, close: () => database.close() };
}

async function addEvents(store: OperableStore, count: number, tenantId?: string): Promise<void> {
  await store.events.add(times(count, () => anEvent({ ...(tenantId && { tenantId }) })));
}

describe("events in LMDB", () => {
  it("are pruned with their index, except the newest, and numbers continue", async () => {
    const { store, advance, waitForRows, close } = await openSweepingEvents();
    const tenantId = randomUUID();
    const follower = followEvents(store, tenantId);
    await follower.next();
    await store.events.add(times(450, () => aFullEvent({ tenantId })));
    await waitForRows([450, 450 * 6, 0, 0]);
    advance(retention);
    await addEvents(store, 2, tenantId);
    await waitForRows([452, 450 * 6 + 2 * 2, 0, 0]);
    advance(1);
    await waitForRows([2, 4, 0, 0]);
    expect(await listEvents(store, { tenantId })).toHaveLength(2);
    advance(retention);
    await waitForRows([1, 2, 0, 0]);
    await addEvents(store, 1, tenantId);
    await waitForRows([1, 2, 0, 0]);
    const last = followEvents(store, tenantId, { after: "452-0" });
    expect(await last.next()).toMatchObject({ events: [{}], missed: false, position: "453-0" });
    await close();
  });

  it("are reported as missed to resuming followers if they were pruned, and the rest is delivered", async () => {
    const { store, advance, waitForRows, close } = await openSweepingEvents();
    const tenantId = randomUUID();
    await addEvents(store, 3, tenantId);
    advance(retention + 1);
    await addEvents(store, 2, tenantId);
    await waitForRows([2, 4, 0, 0]);
    const late = followEvents(store, tenantId, { after: "2-0" });
    expect(await late.next()).toMatchObject({ events: [], missed: true, position: "3-0" });
    const expected = { events: [{}, {}], missed: false, position: "5-0" };
    expect(await late.next()).toMatchObject(expected);
    expect(await followEvents(store, tenantId, { after: "3-0" }).next()).toMatchObject(expected);
    await close();
  });

  it("are reported as missed to a follower that is ahead", async () => {
    const store = await folder.open();
    await addEvents(store, 3);
    const follower = followEvents(store, randomUUID(), { after: "4-0" });
    expect(await follower.next()).toMatchObject({ events: [], missed: true, position: "3-0" });
    const current = followEvents(store, randomUUID(), { after: "3-0" });
    expect(await current.next()).toMatchObject({ events: [], missed: false, position: "3-0" });
  });

  it("are found among many of other tenants, in bounded batches", async () => {
    const store = await folder.open();
    const tenantId = randomUUID();
    await addEvents(store, 2_500);
    await addEvents(store, 150, tenantId);
    const follower = followEvents(store, tenantId, { after: "0-0" });
    const batches = [await follower.next(), await follower.next(), await follower.next()];
    expect(batches.map(({ events, position }) => [events.length, position])).toEqual([
      [0, "1000-0"],
      [100, "2600-0"],
      [50, "2650-0"],
    ]);
  });

  it("are skipped in small batches if they are large and of other tenants", async () => {
    const store = await folder.open();
    const tenantId = randomUUID();
    for (let added = 0; added < 4; added++) {
      await store.events.add([aLargeEvent(500)]);
    }
    await addEvents(store, 1, tenantId);
    const follower = followEvents(store, tenantId, { after: "0-0" });
    expect(await follower.next()).toMatchObject({ events: [], position: "2-0" });
    expect(await follower.next()).toMatchObject({ events: [{ tenantId }], position: "5-0" });
  });

  it("are pruned even if they are large", async () => {
    const { store, advance, waitForRows, close } = await openSweepingEvents();
    for (let added = 0; added < 4; added++) {
      await store.events.add([aLargeEvent(1_000)]);
    }
    advance(retention + 1);
    await addEvents(store, 1);
    await waitForRows([1, 2, 0, 0]);
    await close();
  });

  it("do not block the event loop while few are searched among many", async () => {
    const store = await folder.open();
    const { tenantId, target } = anEvent();
    await store.events.add(times(1_500, () => anEvent({ tenantId, target })));
    let ticks = 0;
    const count = () => {
      ticks++;
      immediate = setImmediate(count);
    };
    let immediate = setImmediate(count);
    const query = { tenantId, target: target.applicationId, kinds: ["rare"], size: 1 };
    expect(await store.events.list(query)).toEqual({ items: [] });
    clearImmediate(immediate);
    expect(ticks).toBeGreaterThanOrEqual(7);
  });

  it("are listed by time even if the clock was set back", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now });
    const { tenantId } = anEvent();
    const first = now();
    const offsets = [0, 50, -20, 10, -30];
    for (const offset of offsets) {
      advance(first + offset - now());
      await addEvents(store, 1, tenantId);
    }
    const list = async (since?: number, until?: number) => {
      const events = await listEvents(store, { tenantId, since, until, size: 2 });
      return events.map(({ at }) => at - first);
    };
    expect(await list()).toEqual([50, 10, 0, -20, -30]);
    expect(await list(first - 20, first + 10)).toEqual([0, -20]);
    const follower = followEvents(store, tenantId, { after: "0-0" });
    const { events } = await follower.next();
    expect(events.map(({ at }) => at - first)).toEqual(offsets);
  });

  it("return an empty page for an invalid cursor", async () => {
    const store = await folder.open();
    const { tenantId } = anEvent();
    await addEvents(store, 3, tenantId);
    for (const after of ["", "nonsense", "-1", "1e3-1", "9".repeat(48)]) {
      expect(await store.events.list({ tenantId, size: 2, after })).toEqual({ items: [] });
    }
  });

  it("reach a waiting follower from other processes", async () => {
    const store = await folder.open();
    const tenantId = randomUUID();
    const follower = followEvents(store, tenantId);
    await follower.next();
    start(child("addEvent", tenantId));
    expect(await follower.next()).toMatchObject({ events: [{ tenantId }], missed: false });
  });
});

describe("stored responses in LMDB", () => {
  it("are removed after they expire, and nothing else is", async () => {
    const { store, advance, waitForRows, close } = await openSweepingEvents();
    const ids = times(450, anIdempotencyId);
    await Promise.all(ids.map((id) => storeResponse(store, id, aResponse())));
    const staying = anIdempotencyId();
    await storeResponse(store, staying, aResponse({ ttl: hour + 1 }));
    // Each has the events of a created and deleted application.
    await waitForRows([902, 1_804, 451, 451]);
    advance(hour);
    await waitForRows([902, 1_804, 1, 1]);
    expect(await store.responses.find(staying)).toBeDefined();
    await close();
  });

  it("leave no rows of the responses that they replace", async () => {
    const { now, advance } = createTestClock();
    const store = await folder.open({ clock: now });
    const id = anIdempotencyId();
    await storeResponse(store, id, aResponse());
    advance(hour);
    await storeResponse(store, id, aResponse({ ttl: 3 * hour }));
    const { waitForRows, close } = await openSweepingEvents();
    await waitForRows([4, 8, 1, 1]);
    await close();
    advance(2 * hour);
    expect(await store.responses.find(id)).toBeDefined();
  });
});

describe("LMDB after a process was killed", () => {
  it("has each change with its event, and no event without its change", async () => {
    const tenantId = randomUUID();
    const lines: Record<string, string | number>[] = [];
    for (let round = 0; round < repetitions({ quick: 2, full: 4 }); round++) {
      const writer = start(child("writeAuditedChanges", tenantId));
      // Eight workers write six lines each before the first delete.
      await writer.line(50);
      // Kills it at any point of its work.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
      await writer.kill();
      lines.push(...writer.lines());

      const store = await folder.open();
      const eventsByTarget = groupByTarget(await listEvents(store, { tenantId }));
      const found = await findAll(store, [...eventsByTarget.keys()]);
      expect(await countApplications(store, tenantId)).toBe(found.size);
      for (const [id, events] of eventsByTarget) {
        expectConsistent(events, found.get(id));
      }
      for (const { updated, to = 0, deleted } of lines) {
        const kinds = must(eventsByTarget.get(String(updated ?? deleted))).map(({ kind }) => kind);
        expect(kinds.length).toBeGreaterThan(Number(to));
        expect(deleted === undefined || kinds.includes("deleted")).toBe(true);
      }
      await store.close();
    }
    expect(lines.some(({ deleted }) => deleted)).toBe(true);
  });

  /** Groups events by application, oldest first. */
  function groupByTarget(events: readonly EventRecord[]): Map<string, EventRecord[]> {
    const groups = new Map<string, EventRecord[]>();
    for (const event of [...events].reverse()) {
      const id = must(event.target.applicationId);
      groups.set(id, [...(groups.get(id) ?? []), event]);
    }
    return groups;
  }

  async function findAll(store: OperableStore, ids: readonly string[]) {
    const found = new Map<string, ApplicationRecord>();
    for (const record of await store.applications.findMany(ids)) {
      if (record) {
        found.set(record.id, record);
      }
    }
    return found;
  }

  async function countApplications({ applications }: OperableStore, tenantId: string) {
    return (await applications.list({ tenantId, size: 1, from: { page: 1 } })).total;
  }

  /** Expects the events of an application to lead to its current state. */
  function expectConsistent(
    events: readonly EventRecord[],
    application: ApplicationRecord | undefined,
  ) {
    const isDeleted = events.at(-1)?.kind === "deleted";
    const changes = isDeleted ? events.slice(0, -1) : events;
    expect(changes.map(({ kind, after }) => [kind, after?.name])).toEqual(
      changes.map((_, index) => [index === 0 ? "created" : "updated", String(index)]),
    );
    expect(application?.name).toBe(isDeleted ? undefined : changes.at(-1)?.after?.name);
  }
});
