/**
 * What Latchkey costs, beside servers that do less and against the goals.
 *
 *     npm run bench                       about 23 minutes, writes docs/performance.md
 *     npm run bench -- --quick            less than 2 minutes, what the goals are about, only prints
 *     npm run bench -- --only growth      one part, only prints
 *     npm run bench -- --profile [path]   leaves a CPU profile of a path
 *
 * Ends with an error where a goal is missed by more than the rounds differ.
 */
import { parseArgs } from "node:util";
import { cleanUp, interruption, scratchFolder } from "./cleanup.js";
import type { Findings } from "./findings.js";
import { type Goal, goalColumns, judge } from "./goals.js";
import { measureGrowth } from "./growth/growth.js";
import { measureGuardCost } from "./guard/cost.js";
import { measureRevocation } from "./guard/revocation.js";
import { measureLatency } from "./latency.js";
import { measureObservation } from "./observation.js";
import { type PartName, type Plan, quickPlan, wholePlan } from "./plan.js";
import { profile } from "./profile.js";
import { type Section, toText, writePage } from "./report.js";
import { measureRequests } from "./requests/requests.js";
import { measureRules } from "./rules/rules.js";
import { type Stage, setUp, tell } from "./stage.js";
import { tableOf } from "./table.js";
import { measureWorkers } from "./workers.js";

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
  tell("starting the servers");
  const stage = await setUp(await scratchFolder());
  if (values.profile) {
    await profile(stage, positionals[0]);
    return;
  }
  const plan = values.quick ? quickPlan : wholePlan;
  const found = await measureAll(stage, plan, values.only ?? plan.parts);
  const findings = wholePlan.parts.flatMap((name) => found.get(name) ?? []);
  const goals = findings.flatMap((part) => part.goals);
  const sections = [sectionOf(goals), ...findings.map(({ section }) => section)];
  console.log(toText(sections));
  if (!values.quick && !values.only) {
    await writePage(sections);
  }
  if (goals.some((goal) => judge(goal) === "missed")) {
    throw new Error("not all goals are met");
  }
}

async function measureAll(
  stage: Stage,
  plan: Plan,
  names: readonly string[],
): Promise<ReadonlyMap<string, Findings>> {
  const unknown = names.find((name) => !Object.hasOwn(parts, name));
  if (unknown !== undefined) {
    throw new Error(`there is no part ${unknown}, only ${Object.keys(parts).join(", ")}`);
  }
  const found = new Map<string, Findings>();
  for (const [name, measurePart] of Object.entries(parts)) {
    if (names.includes(name)) {
      found.set(name, await measurePart(stage, plan));
    }
  }
  return found;
}

function sectionOf(goals: readonly Goal[]): Section {
  return {
    name: "goals",
    table: tableOf(goalColumns, goals),
    facts: [
      "Measured is the median of the rounds (lowest–highest); ratios are of CPU time per request in the same round where nothing else is said.",
    ],
  };
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
