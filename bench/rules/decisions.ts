import type * as decisions from "../../src/contract/decisions/decide.js";
import { loadBuilt } from "../built.js";
import { type manyRules, permission, type RuleSet, rulesOf } from "./rule-sets.js";

/** Microseconds of CPU time for a decision. */
export type CostOfRules = (set: RuleSet, count: 1 | typeof manyRules) => number;

/** How long a decision is repeated, in microseconds of CPU time. */
const longEnough = 50_000;
const decisionsPerLook = 500;

/** Decides in this process, by the function that the service decides with. */
export async function loadCostOfDecisions(): Promise<CostOfRules> {
  const { compileGrants, decide } = await loadBuilt<typeof decisions>(
    "contract/decisions/decide.js",
  );

  return (set, count) => {
    const grants = compileGrants({ permissions: [], rules: rulesOf(set, count) });
    let done = 0;
    let spent = 0;
    const before = process.cpuUsage();
    while (spent < longEnough) {
      for (let at = 0; at < decisionsPerLook; at++) {
        if (!decide(grants, permission, set.token, false).allowed) {
          throw new Error(`the rules with ${set.name} do not allow what they are to allow`);
        }
      }
      done += decisionsPerLook;
      const { user, system } = process.cpuUsage(before);
      spent = user + system;
    }
    return spent / done;
  };
}
