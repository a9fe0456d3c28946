import { reportProgress, type Stage } from "../context.js";
import { measure } from "../load/generator.js";
import type { Plan } from "../plan.js";
import type { Findings, Goal } from "../report/report.js";
import { type Column, type Spread, spreadOf, tableOf, withRange } from "../report/table.js";
import { type Scenario, scenarios } from "../scenarios.js";
import { addressOf, type Server, startLatchkey } from "../servers.js";

const most = 1.1;
/** Of so many calls one is traced where a tracer is registered. */
const callsPerTrace = 100;
/** How often each way has its turn in a round. */
const turns = 4;
const observed = [scenarios.readByKey, scenarios.checkOverGrpc];

/** How a service is watched. */
const ways = ["unseen", "seen", "traced"] as const;
type Way = (typeof ways)[number];

/** CPU µs of a request in one round. */
type Costs = Readonly<Record<Way, number>>;

interface Outcome {
  readonly scenario: Scenario;
  readonly rounds: readonly Costs[];
}

const columns: readonly Column<Outcome>[] = [
  { title: "Request", isText: true, text: ({ scenario }) => scenario.name },
  { title: "CPU µs, all off", text: ({ rounds }) => withRange(cpu(rounds, "unseen"), 0) },
  { title: "CPU µs, defaults", text: ({ rounds }) => withRange(cpu(rounds, "seen"), 0) },
  { title: "Ratio", text: ({ rounds }) => withRange(spreadOf(ratios(rounds, "seen")), 2) },
  {
    title: "Ratio with tracing",
    text: ({ rounds }) => withRange(spreadOf(ratios(rounds, "traced")), 2),
  },
];

/**
 * What it costs to see inside: metrics, the log, and spans, beside the same
 * service with all of it off. Each round has processes of its own, as two of
 * the same kind may differ by more than this costs, in what is compiled when.
 */
export async function measureObservation(stage: Stage, plan: Plan): Promise<Findings> {
  const outcomes = observed.map((scenario) => ({ scenario, rounds: [] as Costs[] }));
  for (let round = 1; round <= plan.observationRounds; round++) {
    reportProgress(`observation: round ${round} of ${plan.observationRounds}`);
    const servers = await startAll(stage);
    for (const { scenario, rounds } of outcomes) {
      rounds.push(await costsOf(stage, servers, scenario, plan));
    }
    for (const way of ways) {
      await servers[way].stop();
    }
  }
  return {
    section: {
      name: "observation",
      table: tableOf(columns, outcomes),
      facts: [
        "All off: `METRICS=off` and `LOG_LEVEL=silent`. Defaults: metrics, scraped once, and the log.",
        `With tracing: \`examples/telemetry.mjs\` is loaded and samples one call in ${callsPerTrace}.`,
        `Median of ${plan.observationRounds} rounds (lowest–highest), each with new processes and ${turns} × ${plan.seconds} s per process.`,
      ],
    },
    goals: outcomes.map(goalOf),
  };
}

async function startAll({ embedded, cores }: Stage): Promise<Record<Way, Server>> {
  const start = async (settings: Readonly<Record<string, string>>, nodeOptions: string[] = []) =>
    startLatchkey({ ...embedded.store, ...settings }, { cores: cores.server, nodeOptions });
  const sampled = {
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: String(1 / callsPerTrace),
  };
  const servers = {
    unseen: await start({ METRICS: "off", LOG_LEVEL: "silent" }),
    seen: await start({}),
    traced: await start(sampled, ["--import", "./examples/telemetry.mjs"]),
  };
  // Only from then on all is counted that can be.
  for (const server of [servers.seen, servers.traced]) {
    await (await fetch(`${addressOf(server)}/metrics`)).text();
  }
  return servers;
}

/** What a request costs in each way, by turns, so that what else the machine does falls upon all of them. */
async function costsOf(
  { embedded, generator }: Stage,
  servers: Readonly<Record<Way, Server>>,
  { load }: Scenario,
  { warmUp, seconds: perTurn }: Plan,
): Promise<Costs> {
  const cpuOf = async (way: Way, seconds: number) => {
    const asked = load({ port: servers[way].port, keys: embedded.keys, seconds }, []);
    return (await measure(servers[way], generator, asked)).sample.cpu;
  };
  const costs = { unseen: 0, seen: 0, traced: 0 };
  for (const way of ways) {
    await cpuOf(way, warmUp);
  }
  for (let turn = 0; turn < turns; turn++) {
    for (const way of turn % 2 === 0 ? ways : ways.toReversed()) {
      costs[way] += (await cpuOf(way, perTurn)) / turns;
    }
  }
  return costs;
}

function cpu(rounds: readonly Costs[], way: Way): Spread {
  return spreadOf(rounds.map((costs) => costs[way]));
}

function ratios(rounds: readonly Costs[], way: Way): number[] {
  return rounds.map((costs) => costs[way] / costs.unseen);
}

function goalOf({ scenario, rounds }: Outcome): Goal {
  return {
    path: `Metrics and log: ${scenario.name}`,
    promise: `≤ ${most.toFixed(2)} × the CPU without them`,
    limit: { atMost: most },
    figures: ratios(rounds, "seen"),
  };
}
