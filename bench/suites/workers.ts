import { type BenchContext, reportProgress } from "../context.js";
import { measure } from "../load/generator.js";
import type { Plan } from "../plan.js";
import type { Goal, SuiteResult } from "../report/report.js";
import { type Column, createTable, formatSpread, type Spread, spreadOf } from "../report/table.js";
import { type Scenario, scenarios } from "../scenarios.js";
import { type Server, startLatchkey } from "../servers.js";

const maxRatio = 1.15;

/** CPU µs per request in one round, with one and with two workers. */
interface Pair {
  readonly one: number;
  readonly two: number;
}

interface Outcome {
  readonly scenario: Scenario;
  readonly pairs: readonly Pair[];
}

const columns: readonly Column<Outcome>[] = [
  { title: "Request", isText: true, text: ({ scenario }) => scenario.name },
  {
    title: "CPU µs, WORKERS=1",
    text: ({ pairs }) =>
      formatSpread(
        spread(pairs, (pair) => pair.one),
        0,
      ),
  },
  {
    title: "CPU µs, WORKERS=2",
    text: ({ pairs }) =>
      formatSpread(
        spread(pairs, (pair) => pair.two),
        0,
      ),
  },
  { title: "Ratio", text: ({ pairs }) => formatSpread(spread(pairs, ratio), 2) },
];

/** Compares the CPU time of all processes per request with one and with two workers. */
export async function measureWorkers(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { embedded, cores } = context;
  const one = await startLatchkey(embedded.store, { cores: cores.server, workers: 1 });
  const two = await startLatchkey(embedded.store, { cores: cores.workers, workers: 2 });
  const outcomes: Outcome[] = [];
  for (const scenario of [scenarios.readByKey, scenarios.createSession]) {
    reportProgress(`workers: ${scenario.name}`);
    // Each of two workers gets only half of the warmup requests.
    await measurePair(context, one, two, scenario, 2 * plan.warmup);
    const pairs: Pair[] = [];
    while (pairs.length < plan.rounds) {
      pairs.push(await measurePair(context, one, two, scenario, plan.seconds));
    }
    outcomes.push({ scenario, pairs });
  }
  await one.stop();
  await two.stop();
  return {
    section: {
      name: "workers",
      isConsoleOnly: true,
      table: createTable(columns, outcomes),
      notes: [
        `Median of ${plan.rounds} rounds of ${plan.seconds} s (lowest–highest). CPU time of all processes of the service.`,
        ...(cores.server === undefined
          ? []
          : [`One worker on core ${cores.server}, two workers on core ${cores.workers}.`]),
      ],
    },
    goals: outcomes.map(toGoal),
  };
}

async function measurePair(
  { embedded, generator }: BenchContext,
  one: Server,
  two: Server,
  { load }: Scenario,
  seconds: number,
): Promise<Pair> {
  const measureCpu = async (server: Server) => {
    const serverLoad = load({ port: server.port, keys: embedded.keys, seconds }, []);
    return (await measure(server, generator, serverLoad)).sample.cpu;
  };
  return { one: await measureCpu(one), two: await measureCpu(two) };
}

function ratio({ one, two }: Pair): number {
  return two / one;
}

function spread(pairs: readonly Pair[], select: (pair: Pair) => number): Spread {
  return spreadOf(pairs.map(select));
}

function toGoal({ scenario, pairs }: Outcome): Goal {
  return {
    metric: `WORKERS=2: ${scenario.name}`,
    condition: `≤ ${maxRatio} × the CPU of one worker`,
    limit: { atMost: maxRatio },
    values: pairs.map(ratio),
  };
}
