import { afterEach, describe, expect, it } from "@jest/globals";
import type { Caller } from "../../src/auth/caller.js";
import { createLastUsedTracker, type LastUsedTracker } from "../../src/auth/last-used.js";
import { newId } from "../../src/lib/uuid.js";
import type { ApplicationRecord, KeyRecord, KeyUse } from "../../src/store/port/records.js";
import { until } from "../support/until.js";

const minute = 60_000;
const now = 100 * minute;
/** Longer than any test, so that nothing is written before close. */
const never = 24 * 60 * minute;

const trackers: LastUsedTracker[] = [];
afterEach(() => Promise.all(trackers.splice(0).map((tracker) => tracker.close())));

function openTracker(recordUses: (uses: readonly KeyUse[]) => Promise<void>, interval = never) {
  const tracker = createLastUsedTracker({
    applications: { recordUses },
    clock: () => now,
    interval,
  });
  trackers.push(tracker);
  return tracker;
}

/** Records uses and returns those written at close. */
async function flushUses(...callers: Caller[]): Promise<readonly KeyUse[]> {
  const written: KeyUse[] = [];
  const tracker = openTracker(async (batch) => void written.push(...batch));
  callers.forEach(tracker.record);
  await tracker.close();
  return written;
}

function createCaller(lastUsedAt?: number, ofSession = false): Caller {
  const id = newId(now);
  const key = { id: newId(now), lastUsedAt } as KeyRecord;
  const application = { id, lastUsedAt } as ApplicationRecord;
  return ofSession ? { application } : { application, key };
}

describe("the use of a key", () => {
  it("is written for the key and its application on first use", async () => {
    const one = createCaller();
    expect(await flushUses(one)).toEqual([
      { applicationId: one.application.id, keyId: one.key?.id, at: now },
    ]);
  });

  it("is written again only when the stored one is a minute old", async () => {
    const [old, recent] = [createCaller(now - minute), createCaller(now - minute + 1)];
    expect(await flushUses(old, recent)).toMatchObject([{ keyId: old.key?.id }]);
  });

  it("is written for the application if a session is used", async () => {
    const session = createCaller(undefined, true);
    expect(await flushUses(session)).toEqual([
      { applicationId: session.application.id, keyId: undefined, at: now },
    ]);
  });

  it("is written once for repeated uses", async () => {
    const one = createCaller();
    expect(await flushUses(...Array.from({ length: 1_000 }, () => one))).toHaveLength(1);
  });

  it("is written in batches", async () => {
    const sizes: number[] = [];
    const tracker = openTracker(async (batch) => void sizes.push(batch.length));
    for (let count = 0; count < 1_200; count++) {
      tracker.record(createCaller());
    }
    expect(sizes).toEqual([]);
    await tracker.close();
    expect(sizes).toEqual([500, 500, 200]);
  });

  it("is dropped when too many are pending", async () => {
    const written: KeyUse[] = [];
    const tracker = openTracker(async (batch) => void written.push(...batch));
    for (let count = 0; count < 60_000; count++) {
      tracker.record(createCaller());
    }
    await tracker.close();
    expect(written).toHaveLength(50_000);
  });

  it("is written at the flush interval", async () => {
    const written: KeyUse[] = [];
    const tracker = openTracker(async (batch) => void written.push(...batch), 5);
    tracker.record(createCaller());
    await until(async () => written.length > 0);
    expect(written).toHaveLength(1);
  });

  it("is dropped if close is aborted, and reported as pending", async () => {
    const controller = new AbortController();
    const sizes: number[] = [];
    const tracker = openTracker(async (batch) => {
      sizes.push(batch.length);
      controller.abort();
    });
    for (let count = 0; count < 1_200; count++) {
      tracker.record(createCaller());
    }
    expect(tracker.pending).toBe(1_200);
    await tracker.close(controller.signal);
    expect(sizes).toEqual([500]);
  });

  it("is dropped if its write fails, without affecting others", async () => {
    let isBroken = true;
    let writes = 0;
    const written: KeyUse[] = [];
    const tracker = openTracker(async (batch) => {
      writes++;
      if (isBroken) {
        throw new Error("store unavailable");
      }
      written.push(...batch);
    }, 5);
    tracker.record(createCaller());
    await until(async () => writes > 0);
    isBroken = false;
    tracker.record(createCaller());
    await tracker.close();
    expect(written).toHaveLength(1);
  });
});
