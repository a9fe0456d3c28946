/**
 * Measures what Latchkey costs, compared with servers that do less and with the goals.
 *
 *     npm run bench                       about 23 minutes, writes docs/explanation/performance.md
 *     npm run bench -- --quick            less than 2 minutes, the parts that have goals, only prints
 *     npm run bench -- --only growth      one part, only prints
 *     npm run bench -- --profile [path]   writes a CPU profile of one kind of request
 *
 * Prints the goals last. Exits with 1 if a goal is missed by more than the rounds differ.
 */
import { parseArgs } from "node:util";
import { cleanUp, interruption, scratchFolder } from "./child-processes.js";
import { reportProgress, type Stage, setUp } from "./context.js";
import { type PartName, type Plan, quickPlan, wholePlan } from "./plan.js";
import { profile } from "./profile.js";
import type { Findings } from "./report/report.js";
import { goalsToText, toText, verdictOf, writePage } from "./report/report.js";
import { measureGrowth } from "./suites/growth/growth.js";
import { measureGuardCost } from "./suites/guard/cost.js";
import { measureRevocation } from "./suites/guard/revocation.js";
import { measureLatency } from "./suites/latency.js";
import { measureObservation } from "./suites/observability.js";
import { measureRequests } from "./suites/requests/requests.js";
import { measureRules } from "./suites/rules/rules.js";
import { measureWorkers } from "./suites/workers.js";

type Part = (stage: Stage, plan: Plan) => Promise<Findings>;

/** In the order in which they run: the requests leave thousands of applications behind. */
const parts: Readonly<Record<PartName, Part>> = {
  rules: measureRules,
  revocation: measureRevocation,
  guard: measureGuardCost,
  latency: measureLatency,
  observation: measureObservation,
  workers: measureWorkers,
  requests: measureRequests,
  growth: measureGrowth,
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", multiple: true },
      profile: { type: "boolean", default: false },
    },
    allowPositionals: true,
  });
  reportProgress("starting the servers");
  const stage = await setUp(await scratchFolder());
  if (values.profile) {
    await profile(stage, positionals[0]);
    return;
  }
  const plan = values.quick ? quickPlan : wholePlan;
  const found = await measureAll(stage, plan, values.only ?? plan.parts);
  const findings = wholePlan.parts.flatMap((name) => found.get(name) ?? []);
  const goals = findings.flatMap((part) => part.goals);
  const sections = findings.map(({ section }) => section);
  console.log(toText(sections));
  if (!values.quick && !values.only) {
    await writePage(sections);
  }
  if (goals.length > 0) {
    console.log(goalsToText(goals));
  }
  if (goals.some((goal) => verdictOf(goal) === "missed")) {
    throw new Error("a goal is missed");
  }
}

async function measureAll(
  stage: Stage,
  plan: Plan,
  names: readonly string[],
): Promise<ReadonlyMap<string, Findings>> {
  const unknown = names.find((name) => !Object.hasOwn(parts, name));
  if (unknown !== undefined) {
    throw new Error(`unknown part ${unknown}; the parts are ${Object.keys(parts).join(", ")}`);
  }
  const found = new Map<string, Findings>();
  for (const [name, measurePart] of Object.entries(parts)) {
    if (names.includes(name)) {
      found.set(name, await measurePart(stage, plan));
    }
  }
  return found;
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
