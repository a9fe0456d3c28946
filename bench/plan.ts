const goalParts = ["requests", "latency", "observation", "workers", "growth"] as const;
const otherParts = ["revocation", "guard", "rules"] as const;

/** The parts of the benchmark: those that the goals are about, and others. In the order in which they are shown. */
export type PartName = (typeof goalParts)[number] | (typeof otherParts)[number];

/** How thoroughly everything is measured. */
export interface Plan {
  readonly parts: readonly PartName[];
  /** Whether requests that no goal is about are measured too. */
  readonly isWhole: boolean;
  /** How many seconds each load is tried first: code that has not run a few thousand times is not compiled yet. */
  readonly warmUp: number;
  readonly rounds: number;
  /** How long each load of a round takes. */
  readonly seconds: number;
  readonly latency: {
    /** Of the highest load. */
    readonly shares: readonly number[];
    readonly rounds: number;
    readonly seconds: number;
  };
  readonly growth: {
    /** How many applications each store has. */
    readonly sizes: readonly [number, ...number[]];
    readonly rounds: number;
    readonly starts: number;
  };
  /** How many keys are revoked in a row. */
  readonly revokes: number;
  /** How many are revoked with long pauses between them. */
  readonly lateRevokes: number;
  /** How many times each kind of check is repeated in a round. */
  readonly checks: { readonly local: number; readonly remote: number };
  /** The rounds of the part about rules, which has loads of its own. */
  readonly ruleRounds: number;
  /** The rounds of the part about what it costs to see inside, which is little: it takes more of them to be seen. */
  readonly observationRounds: number;
}

export const wholePlan: Plan = {
  parts: [...goalParts, ...otherParts],
  isWhole: true,
  warmUp: 2,
  rounds: 5,
  seconds: 1,
  latency: { shares: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], rounds: 3, seconds: 2 },
  growth: { sizes: [1_000, 10_000, 100_000, 1_000_000], rounds: 5, starts: 5 },
  revokes: 1_000,
  lateRevokes: 30,
  checks: { local: 100_000, remote: 2_000 },
  ruleRounds: 3,
  observationRounds: 9,
};

export const quickPlan: Plan = {
  parts: goalParts,
  isWhole: false,
  warmUp: 1,
  rounds: 1,
  seconds: 1,
  latency: { shares: [0.3, 0.7], rounds: 1, seconds: 1 },
  growth: { sizes: [1_000, 20_000], rounds: 1, starts: 2 },
  revokes: 100,
  lateRevokes: 5,
  checks: { local: 20_000, remote: 500 },
  ruleRounds: 1,
  observationRounds: 1,
};
