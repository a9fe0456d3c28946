import { describe, it } from "@jest/globals";
import { expectToHold, expectToViolate } from "./checker.js";
import { type LastManagerBug, lastManager } from "./last-manager.js";

describe("changes that end managers", () => {
  it("leave one, and succeed while another remains", () => {
    expectToHold(lastManager({ managers: 2, changes: [0, 1] }));
    expectToHold(lastManager({ managers: 3, changes: [0, 1, 2], enables: [0] }));
  });

  it.each<[LastManagerBug, string]>([
    ["touches a manager that is disabled", "oneManagerRemains"],
    ["touches after its own write", "oneManagerRemains"],
    ["writes although it was touched", "oneManagerRemains"],
    ["marks that expire", "oneManagerRemains"],
    ["marks that do not expire", "everyChangeEnds"],
  ])("finds the planted bug: %s", (bug, property) => {
    expectToViolate(lastManager({ managers: 2, changes: [0, 1], bug }), property);
  });
});
