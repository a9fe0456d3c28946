/** The suites of the benchmark, in the order of the report. */
const suiteNames = [
  "requests",
  "latency",
  "expiry",
  "observability",
  "workers",
  "growth",
  "node-versions",
  "revocation",
  "guard",
  "rules",
] as const;

export type SuiteName = (typeof suiteNames)[number];

/** How thoroughly everything is measured: the sizes and durations of the suites. */
export interface Plan {
  readonly suites: readonly SuiteName[];
  /** Selects the cases of the requests and comparisons whose name contains one of these. All, if empty. */
  readonly names: readonly string[];
  /** Whether requests without a goal are measured too. */
  readonly isFull: boolean;
  /** Seconds of each warmup load. */
  readonly warmup: number;
  readonly rounds: number;
  /** The duration of each load in a round. */
  readonly seconds: number;
  readonly latency: {
    /** Fractions of the highest load. */
    readonly shares: readonly number[];
    readonly seconds: number;
  };
  /** The comparison with another commit: the rounds are those of each process. */
  readonly compare: {
    readonly processes: number;
    readonly rounds: number;
    readonly seconds: number;
    readonly applications: number;
  };
  readonly expiry: {
    /** How many times as fast as usual the clock of the service runs. */
    readonly speed: number;
    /** The duration of a load. */
    readonly seconds: number;
    /** The loads after the first removal. */
    readonly loads: number;
  };
  /** The processes of each mode, because JIT compilation makes equal processes differ. */
  readonly observabilityProcesses: number;
  /** The number of applications in each store. */
  readonly growthSizes: readonly [number, ...number[]];
  /** Revocations with short pauses between them. */
  readonly revocations: number;
  /** Revocations with long pauses between them. */
  readonly spacedRevocations: number;
  /** Checks per round, from the cache of a guard and by calls. */
  readonly checks: { readonly local: number; readonly remote: number };
}

export const fullPlan: Plan = {
  suites: suiteNames,
  names: [],
  isFull: true,
  warmup: 2,
  rounds: 15,
  seconds: 0.5,
  latency: { shares: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], seconds: 1 },
  expiry: { speed: 12, seconds: 2, loads: 8 },
  compare: { processes: 4, rounds: 20, seconds: 0.25, applications: 2_000 },
  observabilityProcesses: 3,
  growthSizes: [1_000, 10_000, 100_000, 1_000_000],
  revocations: 1_000,
  spacedRevocations: 30,
  checks: { local: 50_000, remote: 500 },
};

export const quickPlan: Plan = {
  suites: ["requests", "latency", "expiry", "observability", "workers", "growth"],
  names: [],
  isFull: false,
  warmup: 1,
  rounds: 5,
  seconds: 0.3,
  latency: { shares: [0.3, 0.7], seconds: 0.5 },
  expiry: { speed: 20, seconds: 2, loads: 4 },
  compare: { processes: 2, rounds: 8, seconds: 0.2, applications: 2_000 },
  observabilityProcesses: 1,
  growthSizes: [1_000, 20_000],
  revocations: 100,
  spacedRevocations: 5,
  checks: { local: 20_000, remote: 200 },
};

/** Whether the plan selects a case of this name. */
export function isSelected({ names }: Plan, name: string): boolean {
  return names.length === 0 || names.some((part) => name.includes(part));
}
