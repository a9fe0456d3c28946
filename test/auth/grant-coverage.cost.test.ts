import { expect, it } from "@jest/globals";
import { compareGrants } from "../../src/auth/grant-coverage.js";
import type { Grants } from "../../src/contract/grants.js";

const permissions = Array.from({ length: 9 }, (_, index) => `token:p${index}`);

/** Rules for separate containers, which are all nested in the container of the last rule. */
function grantsOf(rules: number): Grants {
  const rule = { conditions: [], transform: "mask", permissions };
  const inner = Array.from({ length: rules }, (_, index) => ({
    ...rule,
    priority: (index % 5) + 1,
    container: `/a/${index}/`,
  }));
  return { permissions: [], rules: [...inner, { ...rule, priority: 9, container: "/a/" }] };
}

/** Microseconds of a measurement, so many that the resolution of the CPU clock does not matter. */
const minMeasured = 50_000;

/** The least CPU time of a comparison in several measurements. */
function costOf(rules: number): number {
  const grants = grantsOf(rules);
  function compare(): void {
    const { uncovered } = compareGrants({
      givers: [grants],
      requested: grants,
      current: { permissions, rules: [] },
      concerns: () => true,
    });
    expect(uncovered).toEqual([]);
  }

  const costs = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    let comparisons = 0;
    let used = 0;
    while (used < minMeasured) {
      compare();
      comparisons++;
      const { user, system } = process.cpuUsage(before);
      used = user + system;
    }
    return used / comparisons;
  });
  return Math.min(...costs);
}

it("compares grants at a cost that hardly grows faster than the number of rules", () => {
  costOf(100);
  // Eight times the rules would cost 64 times as much if each were compared with each other one.
  expect(costOf(1_600) / costOf(200)).toBeLessThan(32);
});
