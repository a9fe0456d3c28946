import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { BSON } from "mongodb";
import { toEventFields } from "../src/store/mongo/event-documents.js";
import { createRecentEvents } from "../src/store/mongo/recent-events.js";
import { anEvent } from "./store-contract/event-fixtures.js";
import { must, times } from "./store-contract/fixtures.js";

const tenants = times(2, () => randomUUID());

/** An event that takes about so many bytes. */
function entryOf(number: number, tenantId: string, size: number) {
  const event = anEvent({ tenantId, requestId: String(number), reason: "x".repeat(size) });
  const fields = { ...toEventFields(randomUUID(), event), at: new Date() };
  return { mark: markOf(number), tenantId, document: BSON.serialize(fields) };
}

const markOf = (number: number) => String(number).padStart(24, "0");

/** From how far back one can read on. */
const oldestCovered = (recent: ReturnType<typeof createRecentEvents>, newest: number) =>
  times(newest + 1, (number) => number).findIndex((number) => recent.covers(markOf(number)));

describe("the recent events of MongoDB", () => {
  it("are as few as their number or their size asks for, but for the newest", () => {
    const recent = createRecentEvents(markOf(0), { events: 4, bytes: 10_000 });
    const pushAll = (from: number, count: number, size: number) => {
      for (let number = from; number < from + count; number++) {
        recent.push(entryOf(number, must(tenants[0]), size));
      }
      return oldestCovered(recent, from + count - 1);
    };
    expect(pushAll(1, 9, 10)).toBe(5);
    expect(pushAll(10, 3, 4_000)).toBe(10);
    expect(pushAll(13, 2, 20_000)).toBe(13);
    expect(recent.read(markOf(12), must(tenants[0]), 9)).toBeUndefined();
    const { events, mark } = must(recent.read(markOf(13), must(tenants[0]), 9));
    expect(events).toMatchObject([{ requestId: "14" }]);
    expect(mark).toBe(markOf(14));
  });

  it("are told to each tenant once and in their order, few at a time where they are large", () => {
    const sizes = fc.oneof(fc.constant(10), fc.constant(300_000), fc.constant(1_500_000));
    const pushed = fc.record({ tenant: fc.constantFrom(...tenants), size: sizes });
    fc.assert(
      fc.property(
        fc.array(pushed, { maxLength: 12 }),
        fc.integer({ min: 1, max: 4 }),
        (all, limit) => {
          const recent = createRecentEvents(markOf(0), { events: 12, bytes: 2 ** 30 });
          for (const [index, { tenant, size }] of all.entries()) {
            recent.push(entryOf(index + 1, tenant, size));
          }
          for (const tenantId of tenants) {
            const told: string[] = [];
            for (let mark = markOf(0); mark < recent.mark; ) {
              const reading = must(recent.read(mark, tenantId, limit));
              const taken = reading.events.reduce((sum, { reason = "" }) => sum + reason.length, 0);
              expect(reading.events.length).toBeLessThanOrEqual(limit);
              expect(reading.events.length === 1 || taken <= 2 ** 20).toBe(true);
              expect(reading.mark > mark).toBe(true);
              told.push(...reading.events.map(({ requestId = "" }) => requestId));
              mark = reading.mark;
            }
            const theirs = all.flatMap(({ tenant }, at) =>
              tenant === tenantId ? [`${at + 1}`] : [],
            );
            expect(told).toEqual(theirs);
          }
        },
      ),
      { numRuns: 40 },
    );
  });
});
