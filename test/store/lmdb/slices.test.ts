import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { expiredRetention } from "../../../src/store/port/records.js";
import type { Store } from "../../../src/store/port/store.js";
import { anApplication, aSession, hour, must, times } from "../../contract/store/fixtures.js";
import { createTestClock } from "../../support/clock.js";
import { useLmdbFolder } from "../../support/lmdb/folder.js";
import { audit } from "../../support/store/audit.js";
import { until } from "../../support/until.js";

const folder = useLmdbFolder();

/** Opens a store that sweeps, with sessions that expire in an hour. */
async function openWithSessions(count: number) {
  const clock = createTestClock();
  const store = await folder.open({ clock: clock.now, sweepInterval: 5 });
  const application = await store.applications.create(anApplication(), audit.created);
  const open = (ttl = hour) => store.sessions.create(aSession(application, { ttl }));
  const sessions = await Promise.all(times(count, () => open()));
  const ids = sessions.map((session) => must(session).id).sort();
  return { clock, store, open, first: must(ids[0]), last: must(ids.at(-1)) };
}

/** Returns a function that waits until this many sessions expired, and returns how many did. */
function createDrain({ sessions }: Store) {
  let expired = 0;
  return async (count: number): Promise<number> => {
    for (;;) {
      expired += await sessions.drainExpiredCount();
      if (expired >= count) {
        return expired;
      }
      await setImmediate();
    }
  };
}

/** Counts other writes, one after the other, until the background work is done. */
async function countWritesUntil(store: Store, isDone: () => boolean): Promise<number> {
  let writes = 0;
  while (!isDone()) {
    await store.ping();
    writes++;
  }
  return writes;
}

describe("background work of the LMDB store", () => {
  it("lets other writes take turns with slices of expired sessions", async () => {
    const { clock, store } = await openWithSessions(960);
    clock.advance(hour);
    let isDone = false;
    const expiring = createDrain(store)(960).then(() => {
      isDone = true;
    });
    const writes = await countWritesUntil(store, () => isDone);
    await expiring;
    expect(writes).toBeGreaterThanOrEqual(12);
  });

  it("lets other writes take turns with slices of recorded uses", async () => {
    const store = await folder.open();
    const applications = await Promise.all(
      times(300, () => store.applications.create(anApplication(), audit.created)),
    );
    const ids = applications.map(({ id }) => id);
    const at = Date.now();
    const uses = applications.map(({ id, keys }) => ({
      applicationId: id,
      keyId: must(keys[0]).id,
      at,
    }));
    const recording = store.applications.recordUses(uses);
    const steps: number[] = [];
    for (let recorded = 0; recorded < uses.length; ) {
      await store.ping();
      const found = await store.applications.findMany(ids);
      const count = found.filter((application) => must(application).lastUsedAt === at).length;
      steps.push(count - recorded);
      recorded = count;
    }
    await recording;
    expect(Math.max(...steps)).toBeLessThan(100);
  });

  it("expires sessions while others wait to be removed", async () => {
    const { clock, store, open, first, last } = await openWithSessions(900);
    await open(hour + expiredRetention + hour);
    clock.advance(hour);
    const drainUntil = createDrain(store);
    await drainUntil(900);
    clock.advance(expiredRetention);
    while ((await store.sessions.findExpired(first)) !== undefined) {
      await setImmediate();
    }
    clock.advance(hour);
    await drainUntil(901);
    expect(await store.sessions.findExpired(last)).toBeDefined();
    await until(async () => (await store.sessions.findExpired(last)) === undefined);
  });

  it("counts a session that expires once, if the count is read during a sweep", async () => {
    const { clock, store, last } = await openWithSessions(500);
    clock.advance(hour);
    const drainUntil = createDrain(store);
    await drainUntil(500);
    clock.advance(expiredRetention);
    await until(async () => (await store.sessions.findExpired(last)) === undefined);
    expect(await drainUntil(500)).toBe(500);
  });
});
