import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { BSON, Timestamp } from "mongodb";
import { createSignal } from "../../../src/lib/concurrency.js";
import { toEventDocument } from "../../../src/store/mongo/event-documents.js";
import {
  clusterTimeOf,
  clusterTimeOfOffset,
  clusterTimeOfToken,
  formatPosition,
  offsetOf,
  parsePosition,
  timestampOf,
} from "../../../src/store/mongo/feeds/change-stream.js";
import {
  createRecentExpiries,
  type ExpiryScan,
} from "../../../src/store/mongo/feeds/expiry-scan.js";
import { createRecentEvents } from "../../../src/store/mongo/feeds/recent-events.js";
import type { Change } from "../../../src/store/port/changes.js";
import { anEvent } from "../../contract/store/event-fixtures.js";
import { must, times } from "../../contract/store/fixtures.js";
import { repetitions } from "../../support/jest/suite.js";

const word = fc.nat(0xffff_ffff);

describe("an offset", () => {
  it("sorts by cluster time, then by number", () => {
    const place = fc.tuple(word, word, word);
    fc.assert(
      fc.property(place, place, (one, other) => {
        const [a, b] = [one, other].map(([t, i, n]) =>
          offsetOf(clusterTimeOf(new Timestamp({ t, i })), n),
        );
        const differing = [0, 1, 2].find((index) => one[index] !== other[index]) ?? 0;
        const order = Math.sign((one[differing] ?? 0) - (other[differing] ?? 0));
        expect(a === b ? 0 : String(a) < String(b) ? -1 : 1).toBe(order);
      }),
    );
  });

  it("contains its cluster time, which equals that of the resume token", () => {
    fc.assert(
      fc.property(word, word, word, (t, i, ordinal) => {
        const time = clusterTimeOf(new Timestamp({ t, i }));
        expect(timestampOf(clusterTimeOfOffset(offsetOf(time, ordinal)))).toEqual(
          new Timestamp({ t, i }),
        );
        expect(clusterTimeOfToken({ _data: `82${time.toUpperCase()}2B0229296E04` })).toBe(time);
      }),
    );
    expect(() => clusterTimeOfToken({ _data: "83" })).toThrow("unknown format");
  });
});

describe("a position", () => {
  it("is parsed as it was formatted", () => {
    fc.assert(
      fc.property(word, fc.nat(8.64e15), (ordinal, scannedTo) => {
        const position = { offset: offsetOf("0123456789abcdef", ordinal), scannedTo };
        expect(parsePosition(formatPosition(position))).toEqual(position);
      }),
    );
  });

  it("is not parsed from any other text", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(parsePosition(text)).toBeUndefined();
      }),
    );
  });
});

describe("the buffer of recent expirations", () => {
  const owners = ["mine", "theirs"];
  const scans = fc.array(
    fc.array(
      fc.record({ tenantId: fc.constantFrom(...owners), gap: fc.integer({ min: 0, max: 2 }) }),
      { maxLength: 5 },
    ),
    { maxLength: 10 },
  );

  function scanOf(expiries: ExpiryScan["expiries"], until: number, isGap = false): ExpiryScan {
    return { expiries, isGap, until, isComplete: true, startedAt: until, clusterTime: "" };
  }

  function publish(all: readonly (readonly { tenantId: string; gap: number }[])[], limit: number) {
    const recent = createRecentExpiries(0, limit);
    const published: { tenantId: string; change: Change }[] = [];
    for (const scan of all) {
      let at = recent.scannedTo + 1;
      const expiries = scan.map(({ tenantId, gap }, index) => {
        at += gap;
        const applicationId = `${published.length + index}`;
        return { tenantId, change: { kind: "expired", applicationId, at } as const };
      });
      published.push(...expiries);
      recent.push(scanOf(expiries, at));
    }
    return { recent, published };
  }

  it("returns those of a tenant after any moment, or nothing if some have left it", () => {
    fc.assert(
      fc.property(scans, fc.integer({ min: 1, max: 12 }), (all, capacity) => {
        const { recent, published } = publish(all, capacity);
        for (let moment = 0; moment <= recent.scannedTo; moment++) {
          const later = published.filter(({ change }) => change.at > moment);
          const theirs = later.filter(({ tenantId }) => tenantId === "mine");
          const found = recent.read(moment, "mine");
          if (found) {
            expect(found).toEqual(theirs.map(({ change }) => change));
          } else {
            expect(later.length).toBeGreaterThan(capacity - 1);
          }
        }
        expect(recent.read(recent.scannedTo, "mine")).toEqual([]);
      }),
    );
  });

  it("starts again after a gap", () => {
    const recent = createRecentExpiries(0);
    const change = { kind: "expired", applicationId: "1", at: 5 } as const;
    recent.push(scanOf([{ tenantId: "mine", change }], 10));
    expect(recent.read(4, "mine")).toEqual([change]);
    recent.push(scanOf([{ tenantId: "mine", change: { ...change, at: 15 } }], 20, true));
    expect(recent.read(19, "mine")).toBeUndefined();
    expect(recent.read(20, "mine")).toEqual([]);
  });
});

describe("a signal", () => {
  it("ends one wait, current or later", async () => {
    const wakeup = createSignal();
    const waits = wakeup.wait();
    wakeup.notify();
    await waits;
    wakeup.notify();
    wakeup.notify();
    await wakeup.wait();
    let isOver = false;
    const last = wakeup.wait().then(() => {
      isOver = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    wakeup.notify();
    await last;
  });

  it("is not needed to end a wait with a timeout", async () => {
    await createSignal().wait(1);
  });
});

const tenants = times(2, () => randomUUID());

/** A buffered event of about the given size. */
function createEntry(number: number, tenantId: string, size: number) {
  const event = anEvent({ tenantId, requestId: String(number), reason: "x".repeat(size) });
  const document = toEventDocument({ ...event, id: randomUUID(), at: Date.now() });
  return { offset: offsetNumbered(number), tenantId, document: BSON.serialize(document) };
}

const offsetNumbered = (number: number) => String(number).padStart(24, "0");

/** The oldest event that the buffer can continue from. */
const oldestCovered = (recent: ReturnType<typeof createRecentEvents>, newest: number) =>
  times(newest + 1, (number) => number).findIndex((number) =>
    recent.covers(offsetNumbered(number), must(tenants[0])),
  );

describe("the buffer of recent events", () => {
  it("is limited by number and size, and always contains the newest event", () => {
    const recent = createRecentEvents(offsetNumbered(0), { events: 4, bytes: 10_000, tenants: 9 });
    const pushAll = (from: number, count: number, size: number) => {
      for (let number = from; number < from + count; number++) {
        recent.push(createEntry(number, must(tenants[0]), size));
      }
      return oldestCovered(recent, from + count - 1);
    };
    expect(pushAll(1, 9, 10)).toBe(5);
    expect(pushAll(10, 3, 4_000)).toBe(10);
    expect(pushAll(13, 2, 20_000)).toBe(13);
    expect(recent.read(offsetNumbered(12), must(tenants[0]), 9)).toBeUndefined();
    const { events, offset } = must(recent.read(offsetNumbered(13), must(tenants[0]), 9));
    expect(events).toMatchObject([{ requestId: "14" }]);
    expect(offset).toBe(offsetNumbered(14));
  });

  it("returns the events of each tenant once and in order, fewer at a time if they are large", () => {
    const sizes = fc.oneof(fc.constant(10), fc.constant(300_000), fc.constant(1_500_000));
    const pushed = fc.record({ tenant: fc.constantFrom(...tenants), size: sizes });
    fc.assert(
      fc.property(
        fc.array(pushed, { maxLength: 12 }),
        fc.integer({ min: 1, max: 4 }),
        (all, limit) => {
          const recent = createRecentEvents(offsetNumbered(0), {
            events: 12,
            bytes: 2 ** 30,
            tenants: 9,
          });
          for (const [index, { tenant, size }] of all.entries()) {
            recent.push(createEntry(index + 1, tenant, size));
          }
          for (const tenantId of tenants) {
            const read: string[] = [];
            for (let offset = offsetNumbered(0); offset < recent.offset; ) {
              const reading = must(recent.read(offset, tenantId, limit));
              const taken = reading.events.reduce((sum, { reason = "" }) => sum + reason.length, 0);
              expect(reading.events.length).toBeLessThanOrEqual(limit);
              expect(reading.events.length === 1 || taken <= 2 ** 20).toBe(true);
              expect(reading.offset > offset).toBe(true);
              read.push(...reading.events.map(({ requestId = "" }) => requestId));
              offset = reading.offset;
            }
            const theirs = all.flatMap(({ tenant }, at) =>
              tenant === tenantId ? [`${at + 1}`] : [],
            );
            expect(read).toEqual(theirs);
          }
        },
      ),
      { numRuns: repetitions({ quick: 15, full: 25 }) },
    );
  });

  it("covers a tenant without new events, however many others have", () => {
    const quiet = randomUUID();
    const [busy = "", other = ""] = tenants;
    const recent = createRecentEvents(offsetNumbered(0), { events: 2, bytes: 10_000, tenants: 2 });
    recent.push(createEntry(1, quiet, 10));
    for (let number = 2; number <= 9; number++) {
      recent.push(createEntry(number, busy, 10));
    }
    expect(recent.read(offsetNumbered(0), quiet, 9)).toBeUndefined();
    const reading = { events: [], missed: false, offset: offsetNumbered(9) };
    expect(recent.read(offsetNumbered(1), quiet, 9)).toEqual(reading);
    expect(recent.read(offsetNumbered(0), other, 9)).toEqual(reading);
    // A third tenant takes the place of the one that was quiet for longest.
    for (let number = 10; number <= 12; number++) {
      recent.push(createEntry(number, other, 10));
    }
    expect(recent.read(offsetNumbered(0), quiet, 9)).toBeUndefined();
    expect(recent.read(offsetNumbered(1), quiet, 9)?.events).toEqual([]);
    expect(recent.read(offsetNumbered(8), busy, 9)).toBeUndefined();
  });

  it("covers no tenant across a gap that has left it", () => {
    const recent = createRecentEvents(offsetNumbered(0), { events: 1, bytes: 10_000, tenants: 9 });
    recent.push({ offset: offsetNumbered(1), document: new Uint8Array() });
    recent.push(createEntry(2, must(tenants[0]), 10));
    for (const tenantId of tenants) {
      expect(recent.covers(offsetNumbered(0), tenantId)).toBe(false);
      expect(recent.covers(offsetNumbered(1), tenantId)).toBe(true);
    }
  });

  it("reports a gap to every tenant that reads past it", () => {
    const recent = createRecentEvents(offsetNumbered(0), { events: 4, bytes: 10_000, tenants: 9 });
    recent.push(createEntry(1, must(tenants[0]), 10));
    recent.push({ offset: offsetNumbered(2), document: new Uint8Array() });
    for (const tenantId of tenants) {
      expect(recent.read(offsetNumbered(0), tenantId, 9)).toMatchObject({ missed: true });
      expect(recent.read(offsetNumbered(1), tenantId, 9)).toMatchObject({ missed: true });
      expect(recent.read(offsetNumbered(2), tenantId, 9)).toMatchObject({ missed: false });
    }
  });
});
