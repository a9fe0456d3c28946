import { afterEach, describe, expect, it } from "@jest/globals";
import type { Caller } from "../../src/auth/caller.js";
import { createLastUsedTracker, type LastUsedTracker } from "../../src/auth/last-used.js";
import { newId } from "../../src/lib/uuid.js";
import type { ApplicationRecord, KeyRecord, KeyUse } from "../../src/store/port/records.js";
import { until } from "../support/until.js";

const minute = 60_000;
const now = 100 * minute;
/** Long enough that nothing is written unless requested. */
const never = 24 * 60 * minute;

const opened: LastUsedTracker[] = [];
afterEach(() => Promise.all(opened.splice(0).map((uses) => uses.close())));

function open(recordUses: (uses: readonly KeyUse[]) => Promise<void>, interval = never) {
  const uses = createLastUsedTracker({ applications: { recordUses }, clock: () => now, interval });
  opened.push(uses);
  return uses;
}

/** Records uses and returns those that are written at close. */
async function written(...callers: Caller[]): Promise<readonly KeyUse[]> {
  const found: KeyUse[] = [];
  const uses = open(async (some) => void found.push(...some));
  callers.forEach(uses.note);
  await uses.close();
  return found;
}

function caller(lastUsedAt?: number, ofSession = false): Caller {
  const id = newId(now);
  const key = { id: newId(now), lastUsedAt } as KeyRecord;
  const application = { id, lastUsedAt } as ApplicationRecord;
  return ofSession ? { application } : { application, key };
}

describe("the use of a key", () => {
  it("is written for the key and its application on first use", async () => {
    const one = caller();
    expect(await written(one)).toEqual([
      { applicationId: one.application.id, keyId: one.key?.id, at: now },
    ]);
  });

  it("is written again only when the stored one is a minute old", async () => {
    const [old, recent] = [caller(now - minute), caller(now - minute + 1)];
    expect(await written(old, recent)).toMatchObject([{ keyId: old.key?.id }]);
  });

  it("of a session counts for its application", async () => {
    const session = caller(undefined, true);
    expect(await written(session)).toEqual([
      { applicationId: session.application.id, keyId: undefined, at: now },
    ]);
  });

  it("is written once for repeated uses", async () => {
    const one = caller();
    expect(await written(...Array.from({ length: 1_000 }, () => one))).toHaveLength(1);
  });

  it("is written in batches", async () => {
    const sizes: number[] = [];
    const uses = open(async (some) => void sizes.push(some.length));
    for (let count = 0; count < 1_200; count++) {
      uses.note(caller());
    }
    expect(sizes).toEqual([]);
    await uses.close();
    expect(sizes).toEqual([500, 500, 200]);
  });

  it("is dropped when too many are pending", async () => {
    const found: KeyUse[] = [];
    const uses = open(async (some) => void found.push(...some));
    for (let count = 0; count < 60_000; count++) {
      uses.note(caller());
    }
    await uses.close();
    expect(found).toHaveLength(50_000);
  });

  it("is written at the flush interval", async () => {
    const found: KeyUse[] = [];
    const uses = open(async (some) => void found.push(...some), 5);
    uses.note(caller());
    await until(async () => found.length > 0);
    expect(found).toHaveLength(1);
  });

  it("is dropped if close is aborted, and reported as pending", async () => {
    const giveUp = new AbortController();
    const sizes: number[] = [];
    const uses = open(async (some) => {
      sizes.push(some.length);
      giveUp.abort();
    });
    for (let count = 0; count < 1_200; count++) {
      uses.note(caller());
    }
    expect(uses.pending).toBe(1_200);
    await uses.close(giveUp.signal);
    expect(sizes).toEqual([500]);
  });

  it("is dropped if its write fails, without affecting others", async () => {
    let isBroken = true;
    let asked = 0;
    const found: KeyUse[] = [];
    const uses = open(async (some) => {
      asked++;
      if (isBroken) {
        throw new Error("the store is away");
      }
      found.push(...some);
    }, 5);
    uses.note(caller());
    await until(async () => asked > 0);
    isBroken = false;
    uses.note(caller());
    await uses.close();
    expect(found).toHaveLength(1);
  });
});
