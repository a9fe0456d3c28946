import { randomUUID } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type CountedDenials,
  createDenialCounts,
  type Denial,
  delayPerEvent,
  maxGroups,
  maxGroupsPerTenant,
  maxTenants,
  severalReasons,
} from "../../../src/services/events/denial-counts.js";

const tenantId = randomUUID();

function createDenial(fields: Partial<Denial> = {}): Denial {
  return {
    tenantId,
    actor: { applicationId: "a" },
    target: {},
    reason: "permission_denied",
    method: "m",
    address: "192.0.2.1",
    requestId: randomUUID(),
    ...fields,
  };
}

const sumCounts = (taken: readonly CountedDenials[]) =>
  taken.reduce((total, { count }) => total + count, 0);

describe("createDenialCounts", () => {
  it("groups similar denials under the first", () => {
    const counts = createDenialCounts();
    const first = createDenial();
    counts.add(first, 1);
    counts.add(createDenial(), 1);
    counts.add(createDenial(), 3);
    expect(counts.take(0)).toEqual([{ denial: first, count: 5 }]);
    expect(counts.take(delayPerEvent)).toEqual([]);
  });

  it.each<[field: string, fields: Partial<Denial>]>([
    ["tenant", { tenantId: randomUUID() }],
    ["actor", { actor: { applicationId: "b" } }],
    ["actor's key", { actor: { applicationId: "a", keyId: "k" } }],
    ["actor's session", { actor: { applicationId: "a", sessionId: "k" } }],
    ["target", { target: { applicationId: "a" } }],
    ["reason", { reason: "origin_not_allowed" }],
    ["method", { method: "n" }],
    ["address", { address: "192.0.2.2" }],
  ])("separates denials by %s", (_field, fields) => {
    const counts = createDenialCounts();
    counts.add(createDenial(), 1);
    counts.add(createDenial(fields), 1);
    expect(counts.take(0).map(({ count }) => count)).toEqual([1, 1]);
  });

  it("merges the overflow of one tenant without effect on others", () => {
    const counts = createDenialCounts();
    for (let index = 0; index < maxGroupsPerTenant + 100; index++) {
      counts.add(createDenial({ address: String(index) }), 1);
    }
    const other = createDenial({ tenantId: randomUUID() });
    counts.add(other, 1);
    const taken = counts.take(0);
    expect(taken).toHaveLength(maxGroupsPerTenant + 2);
    expect(taken.filter(({ denial }) => denial.reason === severalReasons)).toEqual([
      {
        denial: {
          tenantId,
          target: {},
          reason: severalReasons,
          requestId: expect.any(String),
        },
        count: 100,
      },
    ]);
    expect(taken).toContainEqual({ denial: other, count: 1 });
    expect(sumCounts(taken)).toBe(maxGroupsPerTenant + 101);
  });

  it("drops and counts denials of tenants above the maximum", () => {
    const counts = createDenialCounts();
    const tenants = Array.from({ length: maxTenants + 10 }, () => randomUUID());
    for (const tenantId of tenants) {
      counts.add(createDenial({ tenantId }), 2);
      counts.add(createDenial({ tenantId, method: "n" }), 1);
    }
    const taken = counts.take(0);
    const merged = taken.filter(({ denial }) => denial.reason === severalReasons);
    expect(taken.length - merged.length).toBe(maxGroups);
    expect(sumCounts(taken)).toBe(3 * maxTenants);
    expect(counts.takeDropped()).toBe(30);
    expect(counts.takeDropped()).toBe(0);
  });

  it("frees the capacity of taken groups and idle tenants", () => {
    const counts = createDenialCounts();
    for (let round = 0; round < 3; round++) {
      const now = round * 10 * delayPerEvent;
      for (let tenant = 0; tenant < maxTenants; tenant++) {
        counts.add(createDenial({ tenantId: randomUUID() }), 1);
      }
      const taken = counts.take(now);
      expect(taken).toHaveLength(maxTenants);
      expect(taken.filter(({ denial }) => denial.reason === severalReasons)).toEqual([]);
      expect(counts.take(now + delayPerEvent)).toEqual([]);
    }
    expect(counts.takeDropped()).toBe(0);
  });

  it("returns every denial at a bounded rate", () => {
    const step = fc.record({
      kind: fc.nat(40),
      count: fc.integer({ min: 1, max: 1_000 }),
      wait: fc.oneof(fc.constant(0), fc.nat(3 * delayPerEvent)),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200, size: "max" }), (steps) => {
        const counts = createDenialCounts();
        let [now, added, returned, events] = [0, 0, 0, 0];
        for (const { kind, count, wait } of steps) {
          counts.add(createDenial({ address: String(kind) }), count);
          added += count;
          now += wait;
          const taken = counts.take(now);
          returned += sumCounts(taken);
          events += taken.length;
          expect(events).toBeLessThanOrEqual(now / delayPerEvent + maxGroupsPerTenant + 1);
        }
        returned += sumCounts(counts.take(Number.POSITIVE_INFINITY));
        expect(returned).toBe(added);
      }),
    );
  });
});
