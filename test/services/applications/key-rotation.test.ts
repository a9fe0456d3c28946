import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { newId } from "../../../src/lib/uuid.js";
import { replaceKey, validKeys, withoutKey } from "../../../src/services/applications/keys.js";
import { expiredRetention, type KeyRecord } from "../../../src/store/port/records.js";

const now = 1_000 * expiredRetention;
const key = (expiresAt?: number): KeyRecord => ({
  id: newId(now),
  hash: new Uint8Array(32),
  createdAt: 0,
  expiresAt,
});
const made = () => ({ id: newId(now), hash: new Uint8Array(32) });
const idsOf = (keys: readonly KeyRecord[] | undefined) => keys?.map(({ id }) => id);

describe("the keys of an application", () => {
  it("keep recently expired ones, which stay invalid, when others change", () => {
    const [present, lately, long] = [key(), key(now - 1), key(now - expiredRetention)];
    const next = made();
    const all = [present, lately, long];
    expect(idsOf(replaceKey(all, next, now, undefined))).toEqual([next.id, lately.id]);
    expect(idsOf(replaceKey(all, next, now, 5))).toEqual([next.id, present.id, lately.id]);
    expect(idsOf(withoutKey(all, present.id, now))).toEqual([lately.id]);
    expect(idsOf(validKeys(all, now))).toEqual([present.id]);
  });

  it("cannot be deleted if already expired", () => {
    const ended = key(now);
    expect(withoutKey([key(), ended], ended.id, now)).toBeUndefined();
  });

  it("are at most three valid ones, and all but one expire", () => {
    const grace = fc.option(fc.integer({ min: 1, max: 100 }), { nil: undefined });
    const step = fc.record({ wait: fc.integer({ min: 0, max: 50 }), grace });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        let keys: readonly KeyRecord[] = [key()];
        let time = now;
        for (const { wait, grace } of steps) {
          time += wait;
          const next = made();
          try {
            keys = replaceKey(keys, next, time, grace);
          } catch {
            expect(validKeys(keys, time)).toHaveLength(3);
            continue;
          }
          const working = validKeys(keys, time);
          expect(working.length).toBeLessThanOrEqual(grace === undefined ? 1 : 3);
          expect(working[0]?.id).toBe(next.id);
          expect(working.filter(({ expiresAt }) => expiresAt === undefined)).toHaveLength(1);
          expect(keys.length).toBeLessThanOrEqual(6);
        }
      }),
    );
  });
});
