import { reportProgress, type Stage } from "../context.js";
import { measure } from "../load/generator.js";
import type { Plan } from "../plan.js";
import type { Findings, Goal } from "../report/report.js";
import { type Column, type Spread, spreadOf, tableOf, withRange } from "../report/table.js";
import { type Scenario, scenarios } from "../scenarios.js";
import { type Server, startLatchkey } from "../servers.js";

const most = 1.15;

/** CPU µs of a request in one round. */
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
      withRange(
        spread(pairs, (pair) => pair.one),
        0,
      ),
  },
  {
    title: "CPU µs, WORKERS=2",
    text: ({ pairs }) =>
      withRange(
        spread(pairs, (pair) => pair.two),
        0,
      ),
  },
  { title: "Ratio", text: ({ pairs }) => withRange(spread(pairs, ratio), 2) },
];

/** What a request costs all processes together where two of them answer, beside one. */
export async function measureWorkers(stage: Stage, plan: Plan): Promise<Findings> {
  const { embedded, cores } = stage;
  const one = await startLatchkey(embedded.store, { cores: cores.server, workers: 1 });
  const two = await startLatchkey(embedded.store, { cores: cores.workers, workers: 2 });
  const outcomes: Outcome[] = [];
  for (const scenario of [scenarios.readByKey, scenarios.createSession]) {
    reportProgress(`workers: ${scenario.name}`);
    // Each of two has only half of the requests to warm up with.
    await pairOf(stage, one, two, scenario, 2 * plan.warmUp);
    const pairs: Pair[] = [];
    while (pairs.length < plan.rounds) {
      pairs.push(await pairOf(stage, one, two, scenario, plan.seconds));
    }
    outcomes.push({ scenario, pairs });
  }
  await one.stop();
  await two.stop();
  return {
    section: {
      name: "workers",
      isPrintedOnly: true,
      table: tableOf(columns, outcomes),
      facts: [
        `Median of ${plan.rounds} rounds of ${plan.seconds} s (lowest–highest). CPU time of all processes of the service.`,
        ...(cores.server === undefined
          ? []
          : [`One worker on core ${cores.server}, two workers on core ${cores.workers}.`]),
      ],
    },
    goals: outcomes.map(goalOf),
  };
}

async function pairOf(
  { embedded, generator }: Stage,
  one: Server,
  two: Server,
  { load }: Scenario,
  seconds: number,
): Promise<Pair> {
  const cpuOf = async (server: Server) => {
    const asked = load({ port: server.port, keys: embedded.keys, seconds }, []);
    return (await measure(server, generator, asked)).sample.cpu;
  };
  return { one: await cpuOf(one), two: await cpuOf(two) };
}

function ratio({ one, two }: Pair): number {
  return two / one;
}

function spread(pairs: readonly Pair[], figure: (pair: Pair) => number): Spread {
  return spreadOf(pairs.map(figure));
}

function goalOf({ scenario, pairs }: Outcome): Goal {
  return {
    path: `WORKERS=2: ${scenario.name}`,
    promise: `≤ ${most} × the CPU of one worker`,
    limit: { atMost: most },
    figures: pairs.map(ratio),
  };
}
