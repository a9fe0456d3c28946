import { type BenchContext, listInstances, reportProgress } from "../../context.js";
import type { Load } from "../../load/load.js";
import type { Plan } from "../../plan.js";
import { type Estimate, estimate, ratio } from "../../report/estimate.js";
import type { SuiteResult } from "../../report/report.js";
import {
  type Column,
  createTable,
  format,
  formatEstimate,
  type Table,
} from "../../report/table.js";
import { measure } from "../../rounds.js";
import {
  concurrency,
  createDecisionBenchmark,
  manyRules,
  prepareChecks,
  type RuleSet,
  ruleSets,
} from "./checks.js";

/** A way to evaluate a rule set, with one rule and with many. */
interface RuleCase {
  readonly evaluator: string;
  readonly set: RuleSet;
  /** Microseconds of CPU time per decision. */
  measureOne(): Promise<number> | number;
  measureMany(): Promise<number> | number;
}

interface Outcome {
  readonly ruleCase: RuleCase;
  readonly one: Estimate;
  readonly many: Estimate;
}

/** Compares the cost of many rules with that of one. */
export async function measureRules(
  context: BenchContext,
  { rounds: count, seconds }: Plan,
): Promise<SuiteResult> {
  const cases = [
    ...(await createInProcessCases()),
    ...(await createServiceCases(context, seconds)),
  ];
  const rounds: { one: number; many: number }[][] = cases.map(() => []);
  // The first round is the warmup.
  for (let round = 0; round <= count; round++) {
    reportProgress(round === 0 ? "rules: warming up" : `rules: round ${round} of ${count}`);
    for (const [index, ruleCase] of cases.entries()) {
      rounds[index]?.push({ one: await ruleCase.measureOne(), many: await ruleCase.measureMany() });
    }
  }
  const outcomes = cases.map((ruleCase, index) =>
    summarize(ruleCase, rounds[index]?.slice(1) ?? []),
  );
  return {
    section: {
      name: "rules",
      table: createTable(columns, outcomes),
      pageTables: [createPageTable(outcomes)],
      notes: [
        `CPU µs with 1 rule → with ${manyRules.toLocaleString("en")} rules, lowest of ${count} rounds.`,
        "Every rule lists the permission; only the last one matches the token.",
        `${concurrency} connections, over ${concurrency} keys.`,
      ],
    },
  };
}

async function createInProcessCases(): Promise<RuleCase[]> {
  const measureDecision = await createDecisionBenchmark();
  return ruleSets.map((set) => ({
    evaluator: "decision only",
    set,
    measureOne: () => measureDecision(set, 1),
    measureMany: () => measureDecision(set, manyRules),
  }));
}

function createServiceCases(context: BenchContext, seconds: number): Promise<RuleCase[]> {
  const { generator } = context;
  return Promise.all(
    listInstances(context).flatMap((instance) =>
      ruleSets.map(async (set) => {
        const one = await prepareChecks(instance, set, 1);
        const many = await prepareChecks(instance, set, manyRules);
        const measureCpu = async (load: Load) =>
          (await measure(generator, instance.server, load, seconds)).sample.cpu;
        return {
          evaluator: `POST /access/check, ${instance.name}`,
          set,
          measureOne: () => measureCpu(one),
          measureMany: () => measureCpu(many),
        };
      }),
    ),
  );
}

function summarize(ruleCase: RuleCase, rounds: readonly { one: number; many: number }[]): Outcome {
  return {
    ruleCase,
    one: estimate(rounds.map(({ one }) => one)),
    many: estimate(rounds.map(({ many }) => many)),
  };
}

const columns: readonly Column<Outcome>[] = [
  { title: "Measured", isText: true, text: ({ ruleCase }) => ruleCase.evaluator },
  { title: "Rules with", isText: true, text: ({ ruleCase }) => ruleCase.set.name },
  { title: "CPU µs, 1 rule", text: ({ one }) => formatEstimate(one, 2) },
  {
    title: `CPU µs, ${manyRules.toLocaleString("en")} rules`,
    text: ({ many }) => formatEstimate(many, 2),
  },
  { title: "Ratio", text: ({ one, many }) => formatEstimate(ratio(many, one), 1) },
];

/** One row per rule set, one column per evaluator. */
function createPageTable(outcomes: readonly Outcome[]): Table {
  const evaluators = [...new Set(outcomes.map(({ ruleCase }) => ruleCase.evaluator))];
  const cell = (set: RuleSet, evaluator: string): string => {
    const outcome = outcomes.find(
      ({ ruleCase }) => ruleCase.set === set && ruleCase.evaluator === evaluator,
    );
    return outcome ? `${format(outcome.one.lowest, 1)} → ${format(outcome.many.lowest, 1)}` : "–";
  };
  return {
    columns: [{ title: "Rules with", isText: true }, ...evaluators.map((title) => ({ title }))],
    rows: ruleSets.map((set) => [set.name, ...evaluators.map((evaluator) => cell(set, evaluator))]),
  };
}
