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

function aDenial(fields: Partial<Denial> = {}): Denial {
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

const totalOf = (taken: readonly CountedDenials[]) =>
  taken.reduce((total, { count }) => total + count, 0);

describe("denial counts", () => {
  it("groups similar denials under the first", () => {
    const counts = createDenialCounts();
    const first = aDenial();
    counts.add(first, 1);
    counts.add(aDenial(), 1);
    counts.add(aDenial(), 3);
    expect(counts.take(0)).toEqual([{ denial: first, count: 5 }]);
    expect(counts.take(delayPerEvent)).toEqual([]);
  });

  it.each<[what: string, fields: Partial<Denial>]>([
    ["tenant", { tenantId: randomUUID() }],
    ["actor", { actor: { applicationId: "b" } }],
    ["actor's key", { actor: { applicationId: "a", keyId: "k" } }],
    ["actor's session", { actor: { applicationId: "a", sessionId: "k" } }],
    ["target", { target: { applicationId: "a" } }],
    ["reason", { reason: "origin_not_allowed" }],
    ["method", { method: "n" }],
    ["address", { address: "192.0.2.2" }],
  ])("separates denials by %s", (_what, fields) => {
    const counts = createDenialCounts();
    counts.add(aDenial(), 1);
    counts.add(aDenial(fields), 1);
    expect(counts.take(0).map(({ count }) => count)).toEqual([1, 1]);
  });

  it("counts the overflow of one tenant together, and not that of others", () => {
    const counts = createDenialCounts();
    for (let kind = 0; kind < maxGroupsPerTenant + 100; kind++) {
      counts.add(aDenial({ address: String(kind) }), 1);
    }
    const other = aDenial({ tenantId: randomUUID() });
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
    expect(totalOf(taken)).toBe(maxGroupsPerTenant + 101);
  });

  it("only counts denials of tenants above the maximum", () => {
    const counts = createDenialCounts();
    const tenants = Array.from({ length: maxTenants + 10 }, () => randomUUID());
    for (const tenantId of tenants) {
      counts.add(aDenial({ tenantId }), 2);
      counts.add(aDenial({ tenantId, method: "n" }), 1);
    }
    const taken = counts.take(0);
    const several = taken.filter(({ denial }) => denial.reason === severalReasons);
    expect(taken.length - several.length).toBe(maxGroups);
    expect(totalOf(taken)).toBe(3 * maxTenants);
    expect(counts.takeDropped()).toBe(30);
    expect(counts.takeDropped()).toBe(0);
  });

  it("frees room when groups are taken and tenants are quiet", () => {
    const counts = createDenialCounts();
    for (let turn = 0; turn < 3; turn++) {
      const at = turn * 10 * delayPerEvent;
      for (let tenant = 0; tenant < maxTenants; tenant++) {
        counts.add(aDenial({ tenantId: randomUUID() }), 1);
      }
      const taken = counts.take(at);
      expect(taken).toHaveLength(maxTenants);
      expect(taken.filter(({ denial }) => denial.reason === severalReasons)).toEqual([]);
      expect(counts.take(at + delayPerEvent)).toEqual([]);
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
        let [now, added, told, events] = [0, 0, 0, 0];
        for (const { kind, count, wait } of steps) {
          counts.add(aDenial({ address: String(kind) }), count);
          added += count;
          now += wait;
          const taken = counts.take(now);
          told += totalOf(taken);
          events += taken.length;
          expect(events).toBeLessThanOrEqual(now / delayPerEvent + maxGroupsPerTenant + 1);
        }
        told += totalOf(counts.take(Number.POSITIVE_INFINITY));
        expect(told).toBe(added);
      }),
    );
  });
});
