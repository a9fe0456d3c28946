import { type BenchContext, reportProgress } from "../context.js";
import { measure } from "../load/generator.js";
import type { Plan } from "../plan.js";
import type { Goal, SuiteResult } from "../report/report.js";
import { type Column, createTable, formatSpread, type Spread, spreadOf } from "../report/table.js";
import { type Scenario, scenarios } from "../scenarios.js";
import { addressOf, type Server, startLatchkey } from "../servers.js";

const maxRatio = 1.1;
/** One call in this many is traced. */
const callsPerTrace = 100;
/** Loads per mode in a round. */
const iterations = 4;
const measuredScenarios = [scenarios.readByKey, scenarios.checkOverGrpc];

const modes = ["disabled", "default", "traced"] as const;
type Mode = (typeof modes)[number];

/** CPU µs per request in one round. */
type Costs = Readonly<Record<Mode, number>>;

interface Outcome {
  readonly scenario: Scenario;
  readonly rounds: readonly Costs[];
}

const columns: readonly Column<Outcome>[] = [
  { title: "Request", isText: true, text: ({ scenario }) => scenario.name },
  { title: "CPU µs, all off", text: ({ rounds }) => formatSpread(cpu(rounds, "disabled"), 0) },
  { title: "CPU µs, defaults", text: ({ rounds }) => formatSpread(cpu(rounds, "default"), 0) },
  { title: "Ratio", text: ({ rounds }) => formatSpread(spreadOf(ratios(rounds, "default")), 2) },
  {
    title: "Ratio with tracing",
    text: ({ rounds }) => formatSpread(spreadOf(ratios(rounds, "traced")), 2),
  },
];

/**
 * Measures the cost of metrics, logs and spans, compared with a service that has
 * all of them off. Each round starts new processes, because JIT compilation can
 * make two equal processes differ by more than this cost.
 */
export async function measureObservability(
  context: BenchContext,
  plan: Plan,
): Promise<SuiteResult> {
  const outcomes = measuredScenarios.map((scenario) => ({ scenario, rounds: [] as Costs[] }));
  for (let round = 1; round <= plan.observabilityRounds; round++) {
    reportProgress(`observability: round ${round} of ${plan.observabilityRounds}`);
    const servers = await startAll(context);
    for (const { scenario, rounds } of outcomes) {
      rounds.push(await measureCosts(context, servers, scenario, plan));
    }
    for (const mode of modes) {
      await servers[mode].stop();
    }
  }
  return {
    section: {
      name: "observability",
      table: createTable(columns, outcomes),
      notes: [
        "All off: `METRICS=off` and `LOG_LEVEL=silent`. Defaults: metrics, scraped once, and the log.",
        `With tracing: \`examples/telemetry.mjs\` is loaded and samples one call in ${callsPerTrace}.`,
        `Median of ${plan.observabilityRounds} rounds (lowest–highest), each with new processes and ${iterations} × ${plan.seconds} s per process.`,
      ],
    },
    goals: outcomes.map(toGoal),
  };
}

async function startAll({ embedded, cores }: BenchContext): Promise<Record<Mode, Server>> {
  const start = (settings: Readonly<Record<string, string>>, nodeOptions: string[] = []) =>
    startLatchkey({ ...embedded.store, ...settings }, { cores: cores.server, nodeOptions });
  const sampled = {
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: String(1 / callsPerTrace),
  };
  const servers = {
    disabled: await start({ METRICS: "off", LOG_LEVEL: "silent" }),
    default: await start({}),
    traced: await start(sampled, ["--import", "./examples/telemetry.mjs"]),
  };
  // Some metrics are collected only after the first scrape.
  for (const server of [servers.default, servers.traced]) {
    await (await fetch(`${addressOf(server)}/metrics`)).text();
  }
  return servers;
}

/** Alternates between the modes, so that noise on the machine affects all of them. */
async function measureCosts(
  { embedded, generator }: BenchContext,
  servers: Readonly<Record<Mode, Server>>,
  { load }: Scenario,
  { warmup, seconds }: Plan,
): Promise<Costs> {
  const measureCpu = async (mode: Mode, duration: number) => {
    const { port } = servers[mode];
    const modeLoad = load({ port, keys: embedded.keys, seconds: duration }, []);
    return (await measure(servers[mode], generator, modeLoad)).sample.cpu;
  };
  const costs = { disabled: 0, default: 0, traced: 0 };
  for (const mode of modes) {
    await measureCpu(mode, warmup);
  }
  for (let iteration = 0; iteration < iterations; iteration++) {
    for (const mode of iteration % 2 === 0 ? modes : modes.toReversed()) {
      costs[mode] += (await measureCpu(mode, seconds)) / iterations;
    }
  }
  return costs;
}

function cpu(rounds: readonly Costs[], mode: Mode): Spread {
  return spreadOf(rounds.map((costs) => costs[mode]));
}

function ratios(rounds: readonly Costs[], mode: Mode): number[] {
  return rounds.map((costs) => costs[mode] / costs.disabled);
}

function toGoal({ scenario, rounds }: Outcome): Goal {
  return {
    metric: `Metrics and log: ${scenario.name}`,
    condition: `≤ ${maxRatio.toFixed(2)} × the CPU without them`,
    limit: { atMost: maxRatio },
    values: ratios(rounds, "default"),
  };
}
