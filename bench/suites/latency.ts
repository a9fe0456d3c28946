import { type ServerUnderTest, startBareHttp } from "../baselines/start.js";
import { type BenchContext, reportProgress } from "../context.js";
import type { LoadGenerator } from "../load/generator.js";
import { measure, type Sample } from "../load/generator.js";
import type { Plan } from "../plan.js";
import { drawPlot } from "../report/plot.js";
import type { SuiteResult } from "../report/report.js";
import {
  type Column,
  createTable,
  format,
  formatSpread,
  type Spread,
  spreadOf,
} from "../report/table.js";
import { readByKey } from "../scenarios.js";

/** The fraction of the highest load that the goal applies to. */
const goalShare = 0.7;
const maxRatio = 5;
/** A server that completes a lower fraction of the requests is overloaded. */
const minCompleted = 0.95;

interface Step {
  /** The fraction of the highest load. */
  readonly share: number;
  /** Requests per second. */
  readonly rate: number;
  /** One per round. */
  readonly samples: readonly Sample[];
  /** The bare server at the same rate, as a baseline for the machine and the generator. */
  readonly baseline: readonly Sample[];
}

const columns: readonly Column<Step>[] = [
  { title: "Load", text: ({ share }) => `${format(share * 100, 0)} %` },
  { title: "Requests/s", text: ({ rate }) => format(rate, 0) },
  {
    title: "p50 ms",
    text: (step) =>
      formatSpread(
        spread(step, ({ p50 }) => p50),
        2,
      ),
  },
  {
    title: "p99 ms",
    text: (step) =>
      formatSpread(
        spread(step, ({ p99 }) => p99),
        2,
      ),
  },
  { title: "p99 / p50", text: (step) => formatSpread(spreadOf(getRatios(step)), 1) },
  {
    title: "bare node:http, p99 / p50",
    text: ({ rate, baseline }) => formatSpread(spreadOf(getRatios({ rate, samples: baseline })), 1),
  },
];

/** Measures latency at fixed fractions of the highest load. */
export async function measureLatency(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { shares, rounds, seconds } = plan.latency;
  const { embedded, generator } = context;
  const bare = await startBareHttp(context);
  await measureAt(bare, generator, undefined, plan.warmup);
  const highest = await findMaxRate(context, plan);
  const steps = shares.map((share) => ({
    share,
    rate: highest * share,
    samples: [] as Sample[],
    baseline: [] as Sample[],
  }));
  for (let round = 1; round <= rounds; round++) {
    reportProgress(`latency: round ${round} of ${rounds}`);
    for (const { rate, samples, baseline } of steps) {
      samples.push(await measureAt(embedded, generator, rate, seconds));
      baseline.push(await measureAt(bare, generator, rate, seconds));
    }
  }
  await bare.server.stop();
  return {
    section: {
      name: "latency",
      table: createTable(columns, steps),
      // The page has the chart instead.
      pageTables: [],
      picture: { file: "latency.svg", altText: "Latency against load", svg: createPlot(steps) },
      notes: [
        `${readByKey.name} on the embedded store. The highest load was ${format(highest, 0)} requests/s.`,
        `Median of ${rounds} rounds of ${seconds} s at each load.`,
        `p99 / p50 was ${formatRange(steps)}; for bare node:http at the same rates ${formatRange(steps.map(({ rate, baseline }) => ({ rate, samples: baseline })))}.`,
      ],
    },
    goals: [
      {
        metric: `p99 at ${goalShare * 100} % of the highest load`,
        condition: `≤ ${maxRatio} × p50`,
        limit: { atMost: maxRatio },
        values: steps.filter(({ share }) => share === goalShare).flatMap(getRatios),
        digits: 1,
      },
    ],
  };
}

/** Measures the throughput with a request always in flight on every connection. */
async function findMaxRate(
  { embedded, generator }: BenchContext,
  { warmup, latency }: Plan,
): Promise<number> {
  reportProgress("latency: finding the highest load");
  await measureAt(embedded, generator, undefined, warmup);
  const rates: number[] = [];
  while (rates.length < latency.rounds) {
    const { requestsPerSecond } = await measureAt(embedded, generator, undefined, latency.seconds);
    rates.push(requestsPerSecond);
  }
  return spreadOf(rates).median;
}

async function measureAt(
  { server, keys }: Pick<ServerUnderTest, "server" | "keys">,
  generator: LoadGenerator,
  rate: number | undefined,
  seconds: number,
): Promise<Sample> {
  const load = readByKey.load({ port: server.port, keys, seconds }, []);
  const ratedLoad = rate === undefined ? load : { ...load, rate };
  return (await measure(server, generator, ratedLoad)).sample;
}

/** Returns p99 / p50 per round. Infinite under overload, where a long queue hides the spread. */
function getRatios({ rate, samples }: Pick<Step, "rate" | "samples">): number[] {
  return samples.map(({ requestsPerSecond, p50, p99 }) =>
    requestsPerSecond < minCompleted * rate ? Number.POSITIVE_INFINITY : p99 / p50,
  );
}

/** Formats the lowest and highest median of the ratios. */
function formatRange(loads: readonly Pick<Step, "rate" | "samples">[]): string {
  const { low, high } = spreadOf(loads.map((load) => spreadOf(getRatios(load)).median));
  return `${format(low, 0)} to ${format(high, 0)}`;
}

function spread({ samples }: Step, select: (sample: Sample) => number): Spread {
  return spreadOf(samples.map(select));
}

function createPlot(steps: readonly Step[]): string {
  const points = (select: (sample: Sample) => number) =>
    steps.map((step) => ({ x: step.share * 100, y: spread(step, select).median }));
  return drawPlot({
    title: `Latency of ${readByKey.name} against load`,
    x: { label: "load, % of the highest" },
    y: { label: "milliseconds", isLogarithmic: true },
    series: [
      { name: "p99", labels: "above", points: points(({ p99 }) => p99) },
      { name: "p50", labels: "below", points: points(({ p50 }) => p50) },
    ],
  });
}
