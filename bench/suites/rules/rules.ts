import { reportProgress, type Stage, subjectsOf } from "../../context.js";
import { measure } from "../../load/generator.js";
import type { Plan } from "../../plan.js";
import type { Findings } from "../../report/report.js";
import {
  type Column,
  format,
  type Spread,
  spreadOf,
  type Table,
  tableOf,
  withRange,
} from "../../report/table.js";
import {
  checksAtATime,
  loadCostOfDecisions,
  manyRules,
  prepareChecks,
  type RuleSet,
  ruleSets,
} from "./checks.js";

/** Something that decides, with one rule and with many. */
interface Contest {
  readonly decider: string;
  readonly set: RuleSet;
  /** Microseconds of CPU time for a decision. */
  costOfOne(): Promise<number> | number;
  costOfMany(): Promise<number> | number;
}

interface Outcome {
  readonly contest: Contest;
  readonly one: Spread;
  readonly many: Spread;
  /** Of the same round. */
  readonly ratio: Spread;
}

/** How long each load takes. */
const seconds = 1;

/** What many rules cost, beside one of them. */
export async function measureRules(stage: Stage, { ruleRounds }: Plan): Promise<Findings> {
  const contests = [...(await contestsHere()), ...(await contestsInService(stage))];
  const rounds: { one: number; many: number }[][] = contests.map(() => []);
  // The first round is only to warm up.
  for (let round = 0; round <= ruleRounds; round++) {
    reportProgress(round === 0 ? "rules: warming up" : `rules: round ${round} of ${ruleRounds}`);
    for (const [at, contest] of contests.entries()) {
      rounds[at]?.push({ one: await contest.costOfOne(), many: await contest.costOfMany() });
    }
  }
  const outcomes = contests.map((contest, at) => sumUp(contest, rounds[at]?.slice(1) ?? []));
  return {
    goals: [],
    section: {
      name: "rules",
      table: tableOf(columns, outcomes),
      pageTables: [pageTable(outcomes)],
      facts: [
        `CPU µs with 1 rule → with ${manyRules.toLocaleString("en")} rules, median of ${ruleRounds} rounds.`,
        "Every rule lists the permission; only the last one matches the token.",
        `${checksAtATime} connections, over ${checksAtATime} keys.`,
      ],
    },
  };
}

async function contestsHere(): Promise<Contest[]> {
  const costOf = await loadCostOfDecisions();
  return ruleSets.map((set) => ({
    decider: "decision only",
    set,
    costOfOne: () => costOf(set, 1),
    costOfMany: () => costOf(set, manyRules),
  }));
}

function contestsInService(stage: Stage): Promise<Contest[]> {
  const { generator } = stage;
  return Promise.all(
    subjectsOf(stage).flatMap((subject) =>
      ruleSets.map(async (set) => {
        const one = await prepareChecks(subject, set, 1, seconds);
        const many = await prepareChecks(subject, set, manyRules, seconds);
        return {
          decider: `POST /access/check, ${subject.name}`,
          set,
          costOfOne: async () => (await measure(subject.server, generator, one)).sample.cpu,
          costOfMany: async () => (await measure(subject.server, generator, many)).sample.cpu,
        };
      }),
    ),
  );
}

function sumUp(contest: Contest, rounds: readonly { one: number; many: number }[]): Outcome {
  return {
    contest,
    one: spreadOf(rounds.map(({ one }) => one)),
    many: spreadOf(rounds.map(({ many }) => many)),
    ratio: spreadOf(rounds.map(({ one, many }) => many / one)),
  };
}

const columns: readonly Column<Outcome>[] = [
  { title: "Measured", isText: true, text: ({ contest }) => contest.decider },
  { title: "Rules with", isText: true, text: ({ contest }) => contest.set.name },
  { title: "CPU µs, 1 rule", text: ({ one }) => withRange(one, 2) },
  {
    title: `CPU µs, ${manyRules.toLocaleString("en")} rules`,
    text: ({ many }) => withRange(many, 2),
  },
  { title: "Ratio", text: ({ ratio }) => withRange(ratio, 1) },
];

/** One row per kind of rules, one column for each place where they are evaluated. */
function pageTable(outcomes: readonly Outcome[]): Table {
  const deciders = [...new Set(outcomes.map(({ contest }) => contest.decider))];
  const cell = (set: RuleSet, decider: string): string => {
    const outcome = outcomes.find(
      ({ contest }) => contest.set === set && contest.decider === decider,
    );
    return outcome ? `${format(outcome.one.median, 1)} → ${format(outcome.many.median, 1)}` : "–";
  };
  return {
    columns: [{ title: "Rules with", isText: true }, ...deciders.map((title) => ({ title }))],
    rows: ruleSets.map((set) => [set.name, ...deciders.map((decider) => cell(set, decider))]),
  };
}
