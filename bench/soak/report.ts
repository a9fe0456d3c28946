import { percentile, spreadOf } from "../statistics.js";
import { risePerMinute, type Sample } from "./gauges.js";
import type { Record } from "./record.js";

export interface SoakResult {
  readonly minutes: number;
  /** Journeys a second. */
  readonly rate: number;
  readonly record: Record;
  readonly samples: readonly Sample[];
}

/** By how much memory may rise in a minute, in MiB: over a short time it has not settled yet. */
const mostRise = (minutes: number) => (minutes < 30 ? 3 : 0.5);

/** By how many open files may rise in a minute. */
const mostFiles = 1;

/** What is wrong with a result, in words. */
export function faultsOf({ minutes, record, samples }: SoakResult): string[] {
  const { count, examples } = record.errors;
  const rise = risePerMinute(samples, ({ memory }) => memory);
  const files = risePerMinute(samples, ({ files }) => files);
  return [
    ...(count > 0 ? [`${count} requests went wrong, such as ${[...examples.values()]}`] : []),
    ...(rise > mostRise(minutes) ? [`memory rises by ${rise.toFixed(2)} MiB a minute`] : []),
    ...(files > mostFiles ? [`open files rise by ${files.toFixed(2)} a minute`] : []),
  ];
}

export function report({ minutes, rate, record, samples }: SoakResult): string {
  const kinds = [...record.latencies].sort(([, a], [, b]) => b.length - a.length);
  const requests = kinds.reduce((sum, [, latencies]) => sum + latencies.length, 0);
  const gauge = (of: (sample: Sample) => number, unit: string) => {
    const { median, low, high } = spreadOf(samples.map(of));
    const rise = risePerMinute(samples, of);
    return `${median.toFixed(1)} (${low.toFixed(1)}–${high.toFixed(1)}) ${unit}, ${rise.toFixed(2)} a minute`;
  };
  return [
    `${requests} requests in ${minutes} minutes, ${Math.round(rate)} journeys a second, ${record.errors.count} errors`,
    `memory       ${gauge(({ memory }) => memory, "MiB")}`,
    `open files   ${gauge(({ files }) => files, "files")}`,
    `delay        ${gauge(({ delay }) => delay, "ms")}`,
    "",
    `${"request".padEnd(28)}${"count".padStart(9)}${"p50 ms".padStart(9)}${"p99 ms".padStart(9)}${"max ms".padStart(9)}`,
    ...kinds.map(([kind, latencies]) => {
      const figures = [50, 99, 100].map((at) => percentile(latencies, at).toFixed(1).padStart(9));
      return `${kind.padEnd(28)}${String(latencies.length).padStart(9)}${figures.join("")}`;
    }),
  ].join("\n");
}
