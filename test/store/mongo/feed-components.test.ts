import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { BSON, Timestamp, UUID } from "mongodb";
import { createSignal } from "../../../src/lib/concurrency.js";
import { toEventDocument } from "../../../src/store/mongo/event-documents.js";
import { createChangePublisher } from "../../../src/store/mongo/feeds/change-hub.js";
import {
  clusterTimeOf,
  clusterTimeOfOffset,
  clusterTimeOfToken,
  formatPosition,
  offsetOf,
  type Position,
  parsePosition,
  type Step,
  timestampOf,
} from "../../../src/store/mongo/feeds/change-stream.js";
import {
  type ChangeEvent,
  toTenantChange,
} from "../../../src/store/mongo/feeds/change-stream-filter.js";
import { createRecentEvents } from "../../../src/store/mongo/feeds/event-hub.js";
import type { ExpiryScan } from "../../../src/store/mongo/feeds/expiry-scan.js";
import { createRecentChanges, type Entry } from "../../../src/store/mongo/feeds/recent-changes.js";
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

describe("an event of the change stream", () => {
  const [id, tenantId, applicationId] = [randomUUID(), randomUUID(), randomUUID()];
  const now = 1_000_000;
  const application: ChangeEvent = {
    _id: {},
    operationType: "update",
    id: new UUID(id),
    tenant_id: new UUID(tenantId),
    has_other_keys: false,
    authorized_at: null,
    modified_at: new Date(5),
  };
  const session = { ...application, application_id: new UUID(applicationId), modified_at: null };
  const deletedWithExpiry = (at: number) => ({ operationType: "delete", expires_at: new Date(at) });

  it.each([
    ["an update", application, { kind: "updated", at: 5 }],
    ["a new key", { ...application, has_other_keys: true }, { kind: "regenerated", at: 5 }],
    ["a deletion", { ...application, operationType: "delete" }, { kind: "deleted", at: now }],
    [
      "a deletion before the expiry",
      { ...application, ...deletedWithExpiry(now + 1) },
      { kind: "deleted", at: now },
    ],
    [
      "a deletion at the expiry",
      { ...application, ...deletedWithExpiry(now) },
      { kind: "expired", at: now },
    ],
    [
      "a deletion by the TTL index",
      { ...application, ...deletedWithExpiry(7) },
      { kind: "expired", at: 7 },
    ],
  ])("is converted for an application: %s", (_, event, expected) => {
    const change = { applicationId: id, ...expected };
    expect(toTenantChange(event, now)).toEqual({ tenantId, change });
  });

  it.each([
    ["authorized", { authorized_at: new Date(6) }, { kind: "authorized", at: 6 }],
    ["changed", {}, { kind: "updated", at: now }],
    [
      "changed after it was authorized",
      { authorized_at: new Date(6), was_authorized_at: new Date(6) },
      { kind: "updated", at: now },
    ],
    ["deleted by the TTL index", deletedWithExpiry(7), { kind: "expired", at: 7 }],
    ["deleted", { operationType: "delete" }, { kind: "deleted", at: now }],
  ])("is converted for a session: %s", (_, fields, expected) => {
    const change = { applicationId, sessionId: id, ...expected };
    expect(toTenantChange({ ...session, ...fields }, now)).toEqual({ tenantId, change });
  });

  it("is ignored without a tenant", () => {
    const { tenant_id, ...unknown } = session;
    expect(toTenantChange(unknown, now)).toBeUndefined();
    expect(toTenantChange({ _id: {}, operationType: "drop" }, now)).toBeUndefined();
  });
});

describe("the buffer of recent changes", () => {
  const tenants = ["mine", "theirs"];
  const start: Position = { offset: offsetOf("0".repeat(16), 0), scannedTo: 0 };

  /** An event, possibly of an unknown tenant, or the result of a scan. */
  interface Step {
    readonly tenantId?: string | undefined;
    readonly expiries?: readonly { readonly tenantId: string; readonly gap: number }[];
  }

  const event = fc.record({ tenantId: fc.constantFrom(...tenants, undefined) });
  const scan = fc.record({
    expiries: fc.array(
      fc.record({ tenantId: fc.constantFrom(...tenants), gap: fc.integer({ min: 0, max: 2 }) }),
      { maxLength: 5 },
    ),
  });
  const history: fc.Arbitrary<Step[]> = fc.array(fc.oneof(event, scan), { maxLength: 30 });

  /** Publishes steps like the change publisher, and returns each entry with the position after it. */
  function publish(steps: readonly Step[], capacity: number) {
    const recent = createRecentChanges({ start, capacity, retention: 1, clock: () => 0 });
    const published: { entry: Entry; position: Position }[] = [];
    const push = (entry: Entry, position: Position) => {
      recent.push(entry, position);
      published.push({ entry, position });
    };
    let count = 0;
    for (const { tenantId, expiries } of steps) {
      const { offset, scannedTo } = recent.position;
      if (!expiries) {
        const next = offsetOf("0".repeat(16), ++count);
        const change = tenantId && ({ kind: "updated", applicationId: `${count}`, at: 0 } as const);
        push({ tenantId, change: change || undefined, offset: next }, { offset: next, scannedTo });
        continue;
      }
      let at = scannedTo + 1;
      const moments = expiries.map(({ gap }) => {
        at += gap;
        return at;
      });
      for (const [index, one] of expiries.entries()) {
        const moment = moments[index] ?? 0;
        const change = { kind: "expired", applicationId: `${++count}`, at: moment } as const;
        const isLast = moments[index + 1] !== moment;
        push({ tenantId: one.tenantId, change }, { offset, scannedTo: moment - (isLast ? 0 : 1) });
      }
      recent.advance({ offset, scannedTo: at + 1 });
    }
    return { recent, published };
  }

  function readAll(recent: ReturnType<typeof createRecentChanges>, from: number, after?: Position) {
    const ids: string[] = [];
    let missed = false;
    let next = from;
    let position = after;
    do {
      const reading = recent.read(next, "mine", after, 2);
      expect(reading.changes.length).toBeLessThanOrEqual(2);
      ids.push(...reading.changes.map(({ applicationId }) => applicationId));
      missed ||= reading.missed;
      ({ next, position } = reading);
    } while (next < recent.nextNumber);
    return { ids, missed, position };
  }

  const mine = (entries: readonly { entry: Entry }[]) =>
    entries.flatMap(({ entry }) =>
      entry.tenantId === "mine" && entry.change ? [entry.change.applicationId] : [],
    );

  it("returns all changes of a tenant in order, and the position after them", () => {
    fc.assert(
      fc.property(history, (steps) => {
        const { recent, published } = publish(steps, 1_000);
        const { ids, missed, position } = readAll(recent, 0);
        expect(ids).toEqual(mine(published));
        expect(missed).toBe(published.some(({ entry }) => !entry.change));
        expect(position).toEqual(recent.position);
      }),
    );
  });

  it("continues from every position without a loss, or reports that it does not cover the position", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 1, max: 20 }), (steps, capacity) => {
        const { recent, published } = publish(steps, capacity);
        const isBuffered = (index: number) => index >= recent.oldest;
        for (const [index, { position }] of published.entries()) {
          const later = published.slice(index + 1);
          if (!recent.covers(position)) {
            expect(recent.oldest).toBeGreaterThan(0);
            continue;
          }
          expect(later.every((_, offset) => isBuffered(index + 1 + offset))).toBe(true);
          const { ids, missed } = readAll(recent, recent.oldest, position);
          expect(missed).toBe(later.some(({ entry }) => !entry.change));
          const read = new Set(ids);
          expect(mine(later).filter((id) => !read.has(id))).toEqual([]);
          expect(read.size).toBe(ids.length);
        }
        expect(recent.covers(recent.position)).toBe(true);
      }),
    );
  });

  it("returns nothing twice to a reader that resumes at the end", () => {
    fc.assert(
      fc.property(history, (steps) => {
        const { recent } = publish(steps, 1_000);
        expect(readAll(recent, recent.oldest, recent.position)).toMatchObject({
          ids: [],
          missed: false,
        });
      }),
    );
  });

  it("reports missed changes to a reader that fell behind", () => {
    const { recent } = publish(Array(10).fill({ tenantId: "theirs" }), 4);
    expect(recent.read(5, "mine", undefined, 9)).toMatchObject({ missed: true, next: 10 });
    expect(recent.read(6, "mine", undefined, 9)).toMatchObject({ missed: false, next: 10 });
  });

  it("removes old changes", () => {
    let now = 0;
    const recent = createRecentChanges({ start, capacity: 9, retention: 10, clock: () => now });
    const offset = offsetOf("0".repeat(16), 1);
    recent.push({ tenantId: "mine", offset }, { ...start, offset });
    now = 9;
    recent.advance(recent.position);
    expect([recent.oldest, recent.covers(start)]).toEqual([0, true]);
    now = 10;
    recent.advance(recent.position);
    expect([recent.oldest, recent.covers(start)]).toEqual([1, false]);
  });
});

describe("the change publisher", () => {
  const [mine, theirs] = [randomUUID(), randomUUID()];
  const time = "0123456789abcdef";
  const start = { offset: offsetOf(time, 0), scannedTo: 100 };
  const now = 1_000;

  const sweptAt = (id: string, at: number, ordinal: number): Step<ChangeEvent> => ({
    event: {
      _id: {},
      operationType: "delete",
      id: new UUID(id),
      tenant_id: new UUID(mine),
      expires_at: new Date(at),
    },
    offset: offsetOf(time, ordinal),
    passed: offsetOf(time, 0),
  });

  const scanned = (until: number, ids: Record<string, number> = {}): ExpiryScan => ({
    expiries: Object.entries(ids).map(([applicationId, at]) => ({
      tenantId: mine,
      change: { kind: "expired", applicationId, at },
    })),
    until,
    isComplete: true,
    startedAt: until,
    clusterTime: time,
  });

  function createPublished() {
    const publisher = createChangePublisher({ start, toTimestamp: () => now });
    const publishedTimes = () =>
      publisher.recent.read(0, mine, undefined, 99).changes.map(({ at }) => at);
    return { publisher, publishedTimes };
  }

  it("publishes an expiration once, whether stream or scan is first", () => {
    const { publisher, publishedTimes } = createPublished();
    const [early, late] = [randomUUID(), randomUUID()];
    publisher.publishStep(sweptAt(early, 150, 1));
    publisher.publishScan(scanned(200, { [early]: 150, [late]: 160 }));
    publisher.publishStep(sweptAt(late, 160, 2));
    expect(publishedTimes()).toEqual([150, 160]);
    expect(publisher.recent.position).toEqual({ offset: offsetOf(time, 2), scannedTo: 200 });
  });

  it("publishes an expiration that no scan found, and none from before the start", () => {
    const { publisher, publishedTimes } = createPublished();
    publisher.publishStep(sweptAt(randomUUID(), 100, 1));
    publisher.publishStep(sweptAt(randomUUID(), 101, 2));
    expect(publishedTimes()).toEqual([101]);
  });

  it("is complete after a complete scan, and not after a partial one", () => {
    const { publisher } = createPublished();
    publisher.publishScan({ ...scanned(200), isComplete: false });
    expect(publisher.completeUntil).toBe(Number.NEGATIVE_INFINITY);
    publisher.publishScan(scanned(300));
    expect(publisher.completeUntil).toBe(300);
  });

  it("notifies the followers of the tenant", async () => {
    const { publisher } = createPublished();
    const notified: string[] = [];
    for (const [name, tenantId] of Object.entries({ mine, theirs })) {
      const notify = () => void notified.push(name);
      publisher.join(tenantId, { notify, wait: () => Promise.resolve() });
    }
    const notifiedBy = (work: () => void) => {
      work();
      return notified.splice(0);
    };
    expect(notifiedBy(() => publisher.publishStep(sweptAt(randomUUID(), 150, 1)))).toEqual([
      "mine",
    ]);
    const { offset, passed } = sweptAt(randomUUID(), 150, 2);
    expect(notifiedBy(() => publisher.publishStep({ offset, passed }))).toEqual([]);
    const drop = { event: { _id: {}, operationType: "drop" }, offset, passed };
    expect(notifiedBy(() => publisher.publishStep(drop))).toEqual(["mine", "theirs"]);
    expect(notifiedBy(() => publisher.publishScan(scanned(200)))).toEqual(["mine", "theirs"]);
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
    recent.covers(offsetNumbered(number)),
  );

describe("the buffer of recent events", () => {
  it("is limited by number and size, and always contains the newest event", () => {
    const recent = createRecentEvents(offsetNumbered(0), { events: 4, bytes: 10_000 });
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
          const recent = createRecentEvents(offsetNumbered(0), { events: 12, bytes: 2 ** 30 });
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
      { numRuns: repetitions({ quick: 15, full: 40 }) },
    );
  });
});
