import { type Participant, startBare } from "../baselines/start.js";
import { reportProgress, type Stage } from "../context.js";
import type { Generator } from "../load/generator.js";
import { measure, type Sample } from "../load/generator.js";
import type { Plan } from "../plan.js";
import { drawPlot } from "../report/plot.js";
import type { Findings } from "../report/report.js";
import { type Column, format, type Spread, spreadOf, tableOf, withRange } from "../report/table.js";
import { readByKey } from "../scenarios.js";

/** The share of the highest load at which latencies are judged. */
const judgedShare = 0.7;
const mostTimesMedian = 5;
/** A server that answers less than this share of what it is sent has fallen behind. */
const keepsUp = 0.95;

interface Step {
  /** Of the highest load. */
  readonly share: number;
  /** Requests per second. */
  readonly rate: number;
  /** One of each round. */
  readonly samples: readonly Sample[];
  /** Of a server that does nothing, at the same rate: what the machine and the generator add by themselves. */
  readonly floor: readonly Sample[];
}

const columns: readonly Column<Step>[] = [
  { title: "Load", text: ({ share }) => `${format(share * 100, 0)} %` },
  { title: "Requests/s", text: ({ rate }) => format(rate, 0) },
  {
    title: "p50 ms",
    text: (step) =>
      withRange(
        spread(step, ({ p50 }) => p50),
        2,
      ),
  },
  {
    title: "p99 ms",
    text: (step) =>
      withRange(
        spread(step, ({ p99 }) => p99),
        2,
      ),
  },
  { title: "p99 / p50", text: (step) => withRange(spreadOf(timesMedian(step)), 1) },
  {
    title: "bare node:http, p99 / p50",
    text: ({ rate, floor }) => withRange(spreadOf(timesMedian({ rate, samples: floor })), 1),
  },
];

/** Measures latency at fixed shares of the highest load. */
export async function measureLatency(stage: Stage, plan: Plan): Promise<Findings> {
  const { shares, rounds, seconds } = plan.latency;
  const { embedded, generator } = stage;
  const bare = await startBare(stage);
  await loadAt(bare, generator, undefined, plan.warmUp);
  const highest = await highestRate(stage, plan);
  const steps = shares.map((share) => ({
    share,
    rate: highest * share,
    samples: [] as Sample[],
    floor: [] as Sample[],
  }));
  for (let round = 1; round <= rounds; round++) {
    reportProgress(`latency: round ${round} of ${rounds}`);
    for (const { rate, samples, floor } of steps) {
      samples.push(await loadAt(embedded, generator, rate, seconds));
      floor.push(await loadAt(bare, generator, rate, seconds));
    }
  }
  await bare.server.stop();
  return {
    section: {
      name: "latency",
      table: tableOf(columns, steps),
      // The picture shows it.
      pageTables: [],
      picture: { file: "latency.svg", altText: "Latency against load", svg: plotOf(steps) },
      facts: [
        `${readByKey.name} on the embedded store. The highest load was ${format(highest, 0)} requests/s.`,
        `Median of ${rounds} rounds of ${seconds} s at each load.`,
        `p99 / p50 was ${rangeOf(steps)}; for bare node:http at the same rates ${rangeOf(steps.map(({ rate, floor }) => ({ rate, samples: floor })))}.`,
      ],
    },
    goals: [
      {
        path: `p99 at ${judgedShare * 100} % of the highest load`,
        promise: `≤ ${mostTimesMedian} × p50`,
        limit: { atMost: mostTimesMedian },
        figures: steps.filter(({ share }) => share === judgedShare).flatMap(timesMedian),
        digits: 1,
      },
    ],
  };
}

/** What the server answers when every connection sends its next request at once. */
async function highestRate(
  { embedded, generator }: Stage,
  { warmUp, latency }: Plan,
): Promise<number> {
  reportProgress("latency: looking for the highest load");
  await loadAt(embedded, generator, undefined, warmUp);
  const rates: number[] = [];
  while (rates.length < latency.rounds) {
    const { requestsPerSecond } = await loadAt(embedded, generator, undefined, latency.seconds);
    rates.push(requestsPerSecond);
  }
  return spreadOf(rates).median;
}

async function loadAt(
  { server, keys }: Pick<Participant, "server" | "keys">,
  generator: Generator,
  rate: number | undefined,
  seconds: number,
): Promise<Sample> {
  const load = readByKey.load({ port: server.port, keys, seconds }, []);
  const asked = rate === undefined ? load : { ...load, rate };
  return (await measure(server, generator, asked)).sample;
}

/** Where the server falls behind, all requests wait alike: that is no small spread. */
function timesMedian({ rate, samples }: Pick<Step, "rate" | "samples">): number[] {
  return samples.map(({ requestsPerSecond, p50, p99 }) =>
    requestsPerSecond < keepsUp * rate ? Number.POSITIVE_INFINITY : p99 / p50,
  );
}

/** The lowest and the highest median of some loads. */
function rangeOf(loads: readonly Pick<Step, "rate" | "samples">[]): string {
  const { low, high } = spreadOf(loads.map((load) => spreadOf(timesMedian(load)).median));
  return `${format(low, 0)} to ${format(high, 0)}`;
}

function spread({ samples }: Step, figure: (sample: Sample) => number): Spread {
  return spreadOf(samples.map(figure));
}

function plotOf(steps: readonly Step[]): string {
  const points = (figure: (sample: Sample) => number) =>
    steps.map((step) => ({ x: step.share * 100, y: spread(step, figure).median }));
  return drawPlot({
    title: `Latency of ${readByKey.name} against load`,
    x: { label: "load, % of the highest" },
    y: { label: "milliseconds", isLogarithmic: true },
    series: [
      { name: "p99", values: "above", points: points(({ p99 }) => p99) },
      { name: "p50", values: "below", points: points(({ p50 }) => p50) },
    ],
  });
}
