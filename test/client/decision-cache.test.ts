import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { hashParts } from "../../src/client/check-request.js";
import { createDecisionCache } from "../../src/client/decision-cache.js";

describe("createDecisionCache", () => {
  const forever = Number.POSITIVE_INFINITY;
  const entry = { principalIds: ["principal"], requestedAt: 0, lifetime: forever };

  function createCache(maxEntries = 3, maxAge = 1_000) {
    return createDecisionCache<string>({ maxEntries, maxAge });
  }

  it("returns stored decisions only", () => {
    const cache = createCache();
    cache.set("a", { ...entry, decision: "yes" });
    expect(cache.get("a", 0)).toBe("yes");
    expect(cache.get("b", 0)).toBeUndefined();
  });

  it("evicts the least recently used decision when full", () => {
    const cache = createCache();
    for (const id of ["a", "b", "c"]) {
      cache.set(id, { ...entry, decision: id });
    }
    cache.get("a", 0);
    cache.set("d", { ...entry, decision: "d" });
    expect(["a", "b", "c", "d"].map((id) => cache.get(id, 0))).toEqual(["a", undefined, "c", "d"]);
  });

  it("evicts nothing when it replaces a decision", () => {
    const cache = createCache(2);
    for (const [id, decision] of [
      ["a", "old"],
      ["b", "b"],
      ["a", "new"],
    ] as const) {
      cache.set(id, { ...entry, decision });
    }
    expect([cache.get("a", 0), cache.get("b", 0)]).toEqual(["new", "b"]);
  });

  it("stores nothing with a size of 0", () => {
    const cache = createCache(0);
    cache.set("a", { ...entry, decision: "a" });
    expect(cache.get("a", 0)).toBeUndefined();
  });

  it("expires a decision exactly at the end of its lifetime", () => {
    const cache = createCache();
    cache.set("a", { ...entry, decision: "a", requestedAt: 100, lifetime: 50 });
    expect(cache.get("a", 149.999)).toBe("a");
    expect(cache.get("a", 150)).toBeUndefined();
  });

  it("expires a decision at the maximum age", () => {
    const cache = createCache();
    cache.set("a", { ...entry, decision: "a", requestedAt: 100 });
    expect(cache.get("a", 1_099)).toBe("a");
    expect(cache.get("a", 1_100)).toBeUndefined();
  });

  it.each([0, -5, Number.NaN])("does not store a decision with a lifetime of %p", (lifetime) => {
    const cache = createCache(1);
    cache.set("a", { ...entry, decision: "a" });
    cache.set("b", { ...entry, decision: "b", lifetime });
    expect([cache.get("a", 0), cache.get("b", 0)]).toEqual(["a", undefined]);
  });

  it("invalidates a decision by any of its principals", () => {
    const cache = createCache();
    cache.set("session", {
      ...entry,
      decision: "s",
      principalIds: ["application", undefined, "session"],
    });
    cache.set("other", { ...entry, decision: "o", principalIds: ["other"] });
    cache.invalidate("session");
    expect([cache.get("session", 0), cache.get("other", 0)]).toEqual([undefined, "o"]);
  });

  it("drops the principals of a replaced decision", () => {
    const cache = createCache();
    cache.set("a", { ...entry, decision: "old", principalIds: ["one"] });
    cache.set("a", { ...entry, decision: "new", principalIds: ["other"] });
    cache.invalidate("one");
    expect(cache.get("a", 0)).toBe("new");
  });

  it("clears everything", () => {
    const cache = createCache();
    cache.set("a", { ...entry, decision: "a" });
    cache.clear();
    expect(cache.get("a", 0)).toBeUndefined();
  });

  it("behaves like a list of decisions for any sequence of calls", () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const cache = createCache(4, 50);
        const model = createModel(4, 50);
        for (const [index, act] of actions.entries()) {
          expect(act(cache, index)).toEqual(act(model, index));
        }
      }),
      { numRuns: 500 },
    );
  });

  type Cache = ReturnType<typeof createCache>;
  type Action = (cache: Cache, now: number) => unknown;

  const id = fc.constantFrom("a", "b", "c", "d", "e", "f");
  const principalId = fc.constantFrom("x", "y", "z");
  const action: fc.Arbitrary<Action> = fc.oneof(
    {
      weight: 4,
      arbitrary: id.map(
        (id): Action =>
          (cache, now) =>
            cache.get(id, now),
      ),
    },
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          id,
          fc.array(fc.option(principalId, { nil: undefined }), { maxLength: 3 }),
          fc.nat(40),
        )
        .map(
          ([id, principalIds, lifetime]): Action =>
            (cache, now) =>
              cache.set(id, {
                decision: `${id} of ${now}`,
                principalIds,
                requestedAt: now,
                lifetime,
              }),
        ),
    },
    principalId.map(
      (principalId): Action =>
        (cache) =>
          cache.invalidate(principalId),
    ),
    fc.constant<Action>((cache) => cache.clear()),
  );

  /** A simple model: a list, with the most recently used entry last. */
  function createModel(maxEntries: number, maxAge: number): Cache {
    type Stored = {
      id: string;
      decision: string;
      principalIds: readonly unknown[];
      expiresAt: number;
    };
    let stored: Stored[] = [];
    return {
      get(id, now) {
        const found = stored.find((entry) => entry.id === id);
        stored = stored.filter((entry) => entry !== found);
        if (!found || found.expiresAt <= now) {
          return undefined;
        }
        stored.push(found);
        return found.decision;
      },

      set(id, { decision, principalIds, requestedAt, lifetime }) {
        stored = stored.filter((entry) => entry.id !== id);
        if (lifetime > 0) {
          stored.push({
            id,
            decision,
            principalIds,
            expiresAt: requestedAt + Math.min(lifetime, maxAge),
          });
        }
        stored = stored.slice(-maxEntries);
      },

      invalidate(principalId) {
        stored = stored.filter(({ principalIds }) => !principalIds.includes(principalId));
      },

      clear() {
        stored = [];
      },
    };
  }
});

describe("hashParts", () => {
  it("differs for every part and its position", () => {
    const checks = [
      ["a", "b"],
      ["b", "a"],
      ["ab"],
      ["a", "b", undefined],
      ["a", undefined, "b"],
      ['a","b'],
      ["a", "null"],
      ["a", ""],
    ];
    expect(new Set(checks.map(hashParts)).size).toBe(checks.length);
  });

  it("does not contain the key", () => {
    expect(hashParts(["lk_prv_secret"])).not.toContain("secret");
  });
});
