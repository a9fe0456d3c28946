import { afterEach, describe, expect, it } from "@jest/globals";
import type { Caller } from "../../src/auth/caller.js";
import { createUses, type Uses } from "../../src/auth/last-used.js";
import { newId } from "../../src/lib/uuid.js";
import type { ApplicationRecord, KeyRecord, Use } from "../../src/store/port/records.js";
import { until } from "../support/until.js";

const minute = 60_000;
const now = 100 * minute;
/** So long that nothing is written but when it is asked for. */
const never = 24 * 60 * minute;

const opened: Uses[] = [];
afterEach(() => Promise.all(opened.splice(0).map((uses) => uses.close())));

function open(noteUses: (uses: readonly Use[]) => Promise<void>, interval = never) {
  const uses = createUses({ applications: { noteUses }, clock: () => now, interval });
  opened.push(uses);
  return uses;
}

/** Notes uses, and answers those that are written when it ends. */
async function written(...callers: Caller[]): Promise<readonly Use[]> {
  const found: Use[] = [];
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
  it("is written with the key and its application, the first time", async () => {
    const one = caller();
    expect(await written(one)).toEqual([
      { applicationId: one.application.id, keyId: one.key?.id, at: now },
    ]);
  });

  it("is written again once the last one that is known is a minute old, and no sooner", async () => {
    const [old, recent] = [caller(now - minute), caller(now - minute + 1)];
    expect(await written(old, recent)).toMatchObject([{ keyId: old.key?.id }]);
  });

  it("of a session is that of its application", async () => {
    const session = caller(undefined, true);
    expect(await written(session)).toEqual([
      { applicationId: session.application.id, keyId: undefined, at: now },
    ]);
  });

  it("is written once, however often the key is used meanwhile", async () => {
    const one = caller();
    expect(await written(...Array.from({ length: 1_000 }, () => one))).toHaveLength(1);
  });

  it("waits for others to be written with, in batches", async () => {
    const sizes: number[] = [];
    const uses = open(async (some) => void sizes.push(some.length));
    for (let count = 0; count < 1_200; count++) {
      uses.note(caller());
    }
    expect(sizes).toEqual([]);
    await uses.close();
    expect(sizes).toEqual([500, 500, 200]);
  });

  it("takes only so much memory: of too many the last are passed over", async () => {
    const found: Use[] = [];
    const uses = open(async (some) => void found.push(...some));
    for (let count = 0; count < 60_000; count++) {
      uses.note(caller());
    }
    await uses.close();
    expect(found).toHaveLength(50_000);
  });

  it("is written after a while by itself", async () => {
    const found: Use[] = [];
    const uses = open(async (some) => void found.push(...some), 5);
    uses.note(caller());
    await until(async () => found.length > 0);
    expect(found).toHaveLength(1);
  });

  it("stays unwritten where it is to end before all are written, which can be told", async () => {
    const giveUp = new AbortController();
    const sizes: number[] = [];
    const uses = open(async (some) => {
      sizes.push(some.length);
      giveUp.abort();
    });
    for (let count = 0; count < 1_200; count++) {
      uses.note(caller());
    }
    expect(uses.waiting).toBe(1_200);
    await uses.close(giveUp.signal);
    expect(sizes).toEqual([500]);
  });

  it("that cannot be written is lost, and nothing else is", async () => {
    let isBroken = true;
    let asked = 0;
    const found: Use[] = [];
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
