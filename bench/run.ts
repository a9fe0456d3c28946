/**
 * Measures what Latchkey costs, compared with servers that do less and with the goals.
 *
 *     npm run bench                       about 40 minutes, writes docs/explanation/performance.md
 *     npm run bench -- --quick            about 3 minutes, the suites with goals, only prints
 *     npm run bench -- --only growth      one suite, writes its section; node-versions compares Node.js versions
 *     npm run bench -- --goals            the suites with goals, writes only the goals of this version of Node.js
 *     npm run bench -- --profile [name]   writes a CPU profile of one scenario
 *     npm run bench -- --against main     compares with another commit, which it builds
 *
 * With --against and --only requests, names such as embedded/ or createSession select what is measured,
 * and --rounds 50 measures longer, which a busy machine needs.
 *
 * Prints the goals last. Exits with 1 if a goal is missed.
 */
import { parseArgs } from "node:util";
import { cleanUp, createTempFolder, waitForInterrupt } from "./child-processes.js";
import { compareCommits } from "./compare.js";
import { type BenchContext, createContext, reportProgress } from "./context.js";
import { evaluateGoals, type Measured } from "./goals.js";
import { fullPlan, type Plan, quickPlan, type SuiteName } from "./plan.js";
import { getLargestMemory } from "./processes.js";
import { profile } from "./profile.js";
import { estimate } from "./report/estimate.js";
import type { SuiteResult } from "./report/report.js";
import {
  assertPageHas,
  createGoalSection,
  goalSectionName,
  toText,
  writePage,
} from "./report/report.js";
import { measureExpiry } from "./suites/expiry.js";
import { measureGrowth } from "./suites/growth/growth.js";
import { measureGuardCost } from "./suites/guard/cost.js";
import { measureRevocation } from "./suites/guard/revocation.js";
import { measureLatency } from "./suites/latency.js";
import { measureNodeVersions } from "./suites/node-versions.js";
import { measureObservability } from "./suites/observability.js";
import { measureRequests } from "./suites/requests/requests.js";
import { measureRules } from "./suites/rules/rules.js";
import { measureWorkers } from "./suites/workers.js";

type Suite = (context: BenchContext, plan: Plan) => Promise<SuiteResult>;

/** In the order in which they run. `requests` creates thousands of applications, so it is one of the last. */
const suites: Readonly<Record<SuiteName, Suite>> = {
  rules: measureRules,
  revocation: measureRevocation,
  guard: measureGuardCost,
  latency: measureLatency,
  expiry: measureExpiry,
  observability: measureObservability,
  workers: measureWorkers,
  "node-versions": measureNodeVersions,
  requests: measureRequests,
  growth: measureGrowth,
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: "boolean", default: false },
      only: { type: "string", multiple: true },
      goals: { type: "boolean", default: false },
      profile: { type: "boolean", default: false },
      against: { type: "string" },
      rounds: { type: "string" },
    },
    allowPositionals: true,
  });
  const plan = {
    ...withRounds(values.quick ? quickPlan : fullPlan, values.rounds),
    ...(values.goals && { suites: quickPlan.suites, isFull: false }),
    names: positionals,
  };
  const folder = await createTempFolder();
  if (values.against !== undefined) {
    console.log(await compareCommits(values.against, folder, plan));
    return;
  }
  reportProgress("starting the servers");
  const context = await createContext(folder);
  if (values.profile) {
    await profile(context, positionals[0]);
    return;
  }
  const isMeasuringGoals = values.only === undefined;
  const writesPage = !values.quick;
  if (isMeasuringGoals && writesPage) {
    await assertPageHas(goalSectionName);
  }
  const byName = await runSuites(context, plan, values.only ?? plan.suites);
  const results = fullPlan.suites.flatMap((name) => byName.get(name) ?? []);
  const verdicts = evaluateGoals({
    ...(Object.assign({}, ...results.map(({ measured }) => measured)) as Measured),
    ...(isMeasuringGoals && { memory: estimate([getWorkerMemory(context)]) }),
  });
  const sections = results.map(({ section }) => section);
  const shown = isMeasuringGoals ? verdicts : verdicts.filter(({ value }) => value);
  const goals = shown.length > 0 ? [createGoalSection(shown)] : [];
  console.log(toText([...sections, ...goals]));
  if (writesPage) {
    await writePage([...(values.goals ? [] : sections), ...(isMeasuringGoals ? goals : [])]);
  }
  if (verdicts.some(({ isMet }) => isMet === false)) {
    throw new Error("a goal was missed");
  }
}

function withRounds(plan: Plan, text: string | undefined): Plan {
  const rounds = Number(text);
  return text === undefined ? plan : { ...plan, rounds, compare: { ...plan.compare, rounds } };
}

function getWorkerMemory({ embedded }: BenchContext): number {
  return getLargestMemory(embedded.server.pid).unmapped;
}

async function runSuites(
  context: BenchContext,
  plan: Plan,
  names: readonly string[],
): Promise<ReadonlyMap<string, SuiteResult>> {
  const unknown = names.find((name) => !Object.hasOwn(suites, name));
  if (unknown !== undefined) {
    throw new Error(`unknown suite ${unknown}; the suites are ${Object.keys(suites).join(", ")}`);
  }
  const results = new Map<string, SuiteResult>();
  for (const [name, runSuite] of Object.entries(suites)) {
    if (names.includes(name)) {
      results.set(name, await runSuite(context, plan));
    }
  }
  return results;
}

try {
  await Promise.race([main(), waitForInterrupt()]);
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  await cleanUp();
  process.exit();
}
