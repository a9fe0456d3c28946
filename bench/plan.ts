const suitesWithGoals = ["requests", "latency", "observability", "workers", "growth"] as const;
const otherSuites = ["revocation", "guard", "rules"] as const;

/** The suites of the benchmark, in the order of the report. */
export type SuiteName = (typeof suitesWithGoals)[number] | (typeof otherSuites)[number];

/** How thoroughly everything is measured: the sizes and durations of the suites. */
export interface Plan {
  readonly suites: readonly SuiteName[];
  /** Whether requests without a goal are measured too. */
  readonly isFull: boolean;
  /** Seconds of each warmup load, which lets the JIT compile hot code. */
  readonly warmup: number;
  readonly rounds: number;
  /** The duration of each load in a round. */
  readonly seconds: number;
  readonly latency: {
    /** Fractions of the highest load. */
    readonly shares: readonly number[];
    readonly rounds: number;
    readonly seconds: number;
  };
  readonly growth: {
    /** The number of applications in each store. */
    readonly sizes: readonly [number, ...number[]];
    readonly rounds: number;
    readonly starts: number;
  };
  /** Revocations with short pauses between them. */
  readonly revocations: number;
  /** Revocations with long pauses between them. */
  readonly spacedRevocations: number;
  /** Checks per round, from the cache of a guard and by calls. */
  readonly checks: { readonly local: number; readonly remote: number };
  readonly ruleRounds: number;
  /** More than in other suites, because the difference is small. */
  readonly observabilityRounds: number;
}

export const fullPlan: Plan = {
  suites: [...suitesWithGoals, ...otherSuites],
  isFull: true,
  warmup: 2,
  rounds: 5,
  seconds: 1,
  latency: { shares: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], rounds: 3, seconds: 2 },
  growth: { sizes: [1_000, 10_000, 100_000, 1_000_000], rounds: 5, starts: 5 },
  revocations: 1_000,
  spacedRevocations: 30,
  checks: { local: 100_000, remote: 2_000 },
  ruleRounds: 3,
  observabilityRounds: 9,
};

export const quickPlan: Plan = {
  suites: suitesWithGoals,
  isFull: false,
  warmup: 1,
  rounds: 1,
  seconds: 1,
  latency: { shares: [0.3, 0.7], rounds: 1, seconds: 1 },
  growth: { sizes: [1_000, 20_000], rounds: 1, starts: 2 },
  revocations: 100,
  spacedRevocations: 5,
  checks: { local: 20_000, remote: 500 },
  ruleRounds: 1,
  observabilityRounds: 1,
};
