import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { newId } from "../../../src/lib/uuid.js";
import {
  replaceKey,
  validKeys,
  withoutKey,
} from "../../../src/services/applications/key-handlers.js";
import { expiredRetention, type KeyRecord } from "../../../src/store/port/records.js";

const now = 1_000 * expiredRetention;
const createKey = (expiresAt?: number): KeyRecord => ({
  id: newId(now),
  hash: new Uint8Array(32),
  createdAt: 0,
  expiresAt,
});
const createNewKey = () => ({ id: newId(now), hash: new Uint8Array(32) });
const getIds = (keys: readonly KeyRecord[] | undefined) => keys?.map(({ id }) => id);

describe("the keys of an application", () => {
  it("include recently expired ones, which stay invalid, after other keys change", () => {
    const [current, recentlyExpired, longExpired] = [
      createKey(),
      createKey(now - 1),
      createKey(now - expiredRetention),
    ];
    const next = createNewKey();
    const all = [current, recentlyExpired, longExpired];
    expect(getIds(replaceKey(all, next, now, undefined))).toEqual([next.id, recentlyExpired.id]);
    expect(getIds(replaceKey(all, next, now, 5))).toEqual([
      next.id,
      current.id,
      recentlyExpired.id,
    ]);
    expect(getIds(withoutKey(all, current.id, now))).toEqual([recentlyExpired.id]);
    expect(getIds(validKeys(all, now))).toEqual([current.id]);
  });

  it("cannot be deleted if already expired", () => {
    const expired = createKey(now);
    expect(withoutKey([createKey(), expired], expired.id, now)).toBeUndefined();
  });

  it("include at most three valid ones, and all but one expire", () => {
    const grace = fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined });
    const step = fc.record({ wait: fc.integer({ min: 0, max: 50 }), grace });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let keys: readonly KeyRecord[] = [createKey()];
        let time = now;
        for (const { wait, grace } of steps) {
          time += wait;
          const next = createNewKey();
          try {
            keys = replaceKey(keys, next, time, grace);
          } catch {
            expect(validKeys(keys, time)).toHaveLength(3);
            continue;
          }
          const valid = validKeys(keys, time);
          expect(valid.length).toBeLessThanOrEqual(grace === undefined ? 1 : 3);
          expect(valid[0]?.id).toBe(next.id);
          expect(valid.filter(({ expiresAt }) => expiresAt === undefined)).toHaveLength(1);
          expect(keys.length).toBeLessThanOrEqual(6);
        }
      }),
    );
  });
});
