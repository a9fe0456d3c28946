import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { editDistance, nearestOf } from "../../src/lib/nearest.js";

const word = fc.string({ unit: fc.constantFrom("a", "b", "_"), maxLength: 8 });

describe("the edit distance", () => {
  it.each([
    ["", "", 0],
    ["name", "name", 0],
    ["nmae", "name", 1],
    ["nam", "name", 1],
    ["names", "name", 1],
    ["nome", "name", 1],
    ["allowedCidrs", "allowed_cidrs", 2],
  ])("from %j to %j is %i", (one, other, distance) => {
    expect(editDistance(one, other)).toBe(distance);
  });

  it("is symmetric, zero only for equal words, and at most the longer length", () => {
    fc.assert(
      fc.property(word, word, (one, other) => {
        const distance = editDistance(one, other);
        expect(editDistance(other, one)).toBe(distance);
        expect(distance === 0).toBe(one === other);
        expect(distance).toBeLessThanOrEqual(Math.max(one.length, other.length));
      }),
    );
  });
});

describe("the nearest name", () => {
  it("is one of the candidates that differs little, or none", () => {
    const names = ["name", "rules", "permissions"];
    expect(nearestOf("premissions", names)).toBe("permissions");
    expect(nearestOf("Rules", names)).toBe("rules");
    expect(nearestOf("tenant", names)).toBeUndefined();
    expect(nearestOf("x", ["q"])).toBeUndefined();
    expect(nearestOf("n".repeat(100_000), names)).toBeUndefined();
  });
});
