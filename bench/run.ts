/**
 * What Latchkey costs: a request, a check by the guard, many rules; and how
 * soon the guard refuses a key that was revoked.
 *
 *     npm run bench              about 6 minutes, writes docs/performance.md
 *     npm run bench -- --quick   about a minute, only prints
 */
import { parseArgs } from "node:util";
import { cleanUp, interruption, scratchFolder } from "./cleanup.js";
import { measureGuardCost } from "./guard/cost.js";
import { measureRevocation } from "./guard/revocation.js";
import { type Plan, quickPlan, wholePlan } from "./plan.js";
import { type Section, toText, writePage } from "./report.js";
import { measureRequests } from "./requests.js";
import { measureRules } from "./rules/rules.js";
import { setUp, tell } from "./stage.js";

async function main(): Promise<void> {
  const { quick } = parseArgs({ options: { quick: { type: "boolean" } } }).values;
  const sections = await bench(quick ? quickPlan : wholePlan);
  console.log(toText(sections));
  if (!quick) {
    await writePage(sections);
  }
}

async function bench(plan: Plan): Promise<Section[]> {
  tell("starting the servers");
  const stage = await setUp(await scratchFolder());
  // The requests come last: they leave thousands of applications behind.
  const rules = await measureRules(stage, plan);
  const revocation = await measureRevocation(stage, plan);
  const guardCost = await measureGuardCost(stage, plan);
  const requests = await measureRequests(stage, plan);
  return [requests, revocation, guardCost, rules];
}

try {
  await Promise.race([main(), interruption()]);
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  await cleanUp();
  process.exit();
}
