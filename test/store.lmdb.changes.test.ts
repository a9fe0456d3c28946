import { getEventListeners } from "node:events";
import { describe, expect, it } from "@jest/globals";
import { changeRetention } from "../src/store/changes.js";
import { type Store, StoreUnavailable } from "../src/store/store.js";
import { aGrant, anApplication, aSession, createBoth, times } from "./store-contract/fixtures.js";
import { createTestClock } from "./support/clock.js";
import { useFollowers } from "./support/follow.js";
import { useLmdbFolder } from "./support/lmdb-folder.js";
import { openLog } from "./support/lmdb-log.js";

const folder = useLmdbFolder();
const follow = useFollowers();

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
  const log = openLog(folder.path());
  const numbers = () => log.entries().map(({ number }) => number);
  const untilNumbersAre = async (expected: number[]) => {
    for (let looks = 0; looks < 1_000 && String(numbers()) !== String(expected); looks++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(numbers()).toEqual(expected);
  };
  return { store, advance, numbers, untilNumbersAre, close: log.close };
}

describe("a change in LMDB", () => {
  it("is told with its moment by the store's clock, an expiry with its own", async () => {
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

  it("that nobody swept for long is told when somebody does, to one who waited for it", async () => {
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

  it("of a tenant is found among many of others, a bounded number at a time", async () => {
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

  it("is told in the same batches whether one waits for it or comes for it later", async () => {
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
  it("loses what is old, though never its newest entry, and numbers on", async () => {
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

  it("is gone on with by the next to open it, where it had been left", async () => {
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

  it("tells one who was ahead of it that changes were missed", async () => {
    const store = await folder.open();
    const { application } = await createBoth(store);
    await makeChanges(store, 3);
    const follower = follow(store, application.tenantId, { after: "4" });
    expect(await follower.next()).toMatchObject({ changes: [], missed: true, position: "3" });
    const level = follow(store, application.tenantId, { after: "3" });
    expect(await level.next()).toMatchObject({ changes: [], missed: false, position: "3" });
  });

  it("tells one whose next change was pruned that changes were missed", async () => {
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

describe("one who follows changes in LMDB", () => {
  it("hears that the store was closed, waiting or not", async () => {
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

  it("listens to the signal only while it waits", async () => {
    const store = await folder.open();
    const controller = new AbortController();
    const { signal } = controller;
    const listeners = () => getEventListeners(signal, "abort").length;
    const { tenantId } = anApplication();
    const follower = follow(store, tenantId, { signal, beat: 1 });
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
