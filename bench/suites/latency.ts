import { type ServerUnderTest, startBareHttp } from "../baselines/start.js";
import { type BenchContext, reportProgress } from "../context.js";
import type { LoadGenerator } from "../load/generator.js";
import type { Plan } from "../plan.js";
import { type Estimate, estimate } from "../report/estimate.js";
import { drawPlot } from "../report/plot.js";
import type { SuiteResult } from "../report/report.js";
import { type Column, createTable, format, formatEstimate } from "../report/table.js";
import { measure, type Sample } from "../rounds.js";
import { readByKey } from "../scenarios.js";

/** The fraction of the highest load that the goal applies to. */
const goalShare = 0.7;
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
  { title: "p50 ms", text: (step) => formatEstimate(estimateOf(step, "p50"), 2) },
  { title: "p99 ms", text: (step) => formatEstimate(estimateOf(step, "p99"), 2) },
  { title: "p99 / p50", text: (step) => formatEstimate(estimate(getRatios(step)), 1) },
  {
    title: "bare node:http, p99 / p50",
    text: ({ rate, baseline }) =>
      formatEstimate(estimate(getRatios({ rate, samples: baseline })), 1),
  },
];

/** Measures latency at fixed fractions of the highest load. */
export async function measureLatency(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { rounds } = plan;
  const { shares, seconds } = plan.latency;
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
        `Lowest of ${rounds} rounds of ${seconds} s at each load.`,
        `p99 / p50 was ${formatRange(steps)}; for bare node:http at the same rates ${formatRange(steps.map(({ rate, baseline }) => ({ rate, samples: baseline })))}.`,
      ],
    },
    measured: {
      latency: estimate(steps.filter(({ share }) => share === goalShare).flatMap(getRatios)),
    },
  };
}

/** Measures the throughput with a request always in flight on every connection. */
async function findMaxRate({ embedded, generator }: BenchContext, plan: Plan): Promise<number> {
  reportProgress("latency: finding the highest load");
  await measureAt(embedded, generator, undefined, plan.warmup);
  let highest = 0;
  for (let round = 0; round < plan.rounds; round++) {
    const sample = await measureAt(embedded, generator, undefined, plan.seconds);
    highest = Math.max(highest, sample.requestsPerSecond);
  }
  return highest;
}

async function measureAt(
  target: Pick<ServerUnderTest, "server" | "keys">,
  generator: LoadGenerator,
  rate: number | undefined,
  seconds: number,
): Promise<Sample> {
  const load = readByKey.load(target, []);
  const ratedLoad = rate === undefined ? load : { ...load, rate };
  return (await measure(generator, target.server, ratedLoad, seconds)).sample;
}

/** Returns p99 / p50 per round. Infinite under overload, where a long queue hides the spread. */
function getRatios({ rate, samples }: Pick<Step, "rate" | "samples">): number[] {
  return samples.map(({ requestsPerSecond, p50, p99 }) =>
    requestsPerSecond < minCompleted * rate ? Number.POSITIVE_INFINITY : p99 / p50,
  );
}

/** Formats the range of the ratios over all loads. */
function formatRange(loads: readonly Pick<Step, "rate" | "samples">[]): string {
  const ratios = loads.map((load) => estimate(getRatios(load)).lowest);
  return `${format(Math.min(...ratios), 1)} to ${format(Math.max(...ratios), 1)}`;
}

function estimateOf({ samples }: Step, latency: "p50" | "p99"): Estimate {
  return estimate(samples.map((sample) => sample[latency]));
}

function createPlot(steps: readonly Step[]): string {
  const points = (latency: "p50" | "p99") =>
    steps.map((step) => ({ x: step.share * 100, y: estimateOf(step, latency).lowest }));
  return drawPlot({
    title: `Latency of ${readByKey.name} against load`,
    x: { label: "load, % of the highest" },
    y: { label: "milliseconds", isLogarithmic: true },
    series: [
      { name: "p99", labels: "above", points: points("p99") },
      { name: "p50", labels: "below", points: points("p50") },
    ],
  });
}
