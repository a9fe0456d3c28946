import { percentile } from "../report/estimate.js";
import { asText, type Column, createTable, format } from "../report/table.js";
import type { FloodResult } from "./load.js";
import { type Recorder, type Sample, slopePerMinute } from "./recorder.js";

interface SoakResult {
  readonly minutes: number;
  /** Journeys per second. */
  readonly rate: number;
  readonly recorder: Pick<Recorder, "latencies" | "errors">;
  readonly samples: readonly Sample[];
  readonly flood: FloodResult;
}

/** The maximum latency during a flood of invalid requests. */
const maxFloodLatencyMs = 3_000;

/** A resource whose usage must stay flat. */
interface Gauge {
  readonly name: string;
  getValue(sample: Sample): number;
  /** The maximum increase per minute. Higher in short runs, which have not settled. */
  maxIncrease(minutes: number): number;
}

const settledAfterMinutes = 30;

const gauges: readonly Gauge[] = [
  {
    name: "memory in MiB",
    getValue: ({ memory }) => memory,
    maxIncrease: (minutes) => (minutes < settledAfterMinutes ? 3 : 0.5),
  },
  {
    name: "open files",
    getValue: ({ files }) => files,
    maxIncrease: (minutes) => (minutes < settledAfterMinutes ? 1 : 0.5),
  },
];

/** Not flat if the increase is `NaN`, because there were too few samples. */
const isFlat = ({ getValue, maxIncrease }: Gauge, { samples, minutes }: SoakResult) =>
  slopePerMinute(samples, getValue) <= maxIncrease(minutes);

/** Describes why the run failed. Empty if it passed. */
export function findFailures(result: SoakResult): string[] {
  const { latencies, errors } = result.recorder;
  return [
    ...(errors.count > 0
      ? [[`${errors.count} journeys failed, the first:`, ...errors.examples].join("\n  ")]
      : []),
    ...(latencies.size === 0 ? ["no request succeeded"] : []),
    ...gauges
      .filter((gauge) => !isFlat(gauge, result))
      .map(({ name, getValue, maxIncrease }) => {
        const increase = slopePerMinute(result.samples, getValue).toFixed(2);
        return `${name}: increases by ${increase} per minute, the maximum is ${maxIncrease(result.minutes)}`;
      }),
    ...(getSlowestDuringFlood(result) <= maxFloodLatencyMs
      ? []
      : [`${describeFlood(result)}; the maximum is ${maxFloodLatencyMs} ms`]),
  ];
}

/** `NaN` without any call, which fails the run. */
function getSlowestDuringFlood({ flood: { latencies } }: SoakResult): number {
  return percentile(latencies, 100);
}

function describeFlood(result: SoakResult): string {
  const { refused, latencies } = result.flood;
  const slowest = format(getSlowestDuringFlood(result), 1);
  return `during ${format(refused, 0)} large invalid requests, the slowest of ${format(latencies.length, 0)} calls took ${slowest} ms`;
}

/** Renders the results as tables. */
export function formatReport(result: SoakResult): string {
  const { minutes, rate, recorder } = result;
  const kinds = [...recorder.latencies].sort(([, a], [, b]) => b.length - a.length);
  const requests = kinds.reduce((sum, [, latencies]) => sum + latencies.length, 0);
  const heading = [
    `${format(requests, 0)} requests in ${minutes} minutes`,
    `${Math.round(rate)} journeys per second`,
    `${recorder.errors.count} errors`,
  ];
  return [
    heading.join(", "),
    asText(createTable(gaugeColumns(result), gauges)),
    asText(createTable(requestColumns, kinds)),
    describeFlood(result),
  ].join("\n\n");
}

function gaugeColumns(result: SoakResult): Column<Gauge>[] {
  const { samples, minutes } = result;
  const column = (title: string, percent: number): Column<Gauge> => ({
    title,
    text: ({ getValue }) => format(percentile(samples.map(getValue), percent), 1),
  });
  return [
    { title: "all processes", isText: true, text: ({ name }) => name },
    column("median", 50),
    column("lowest", 0),
    column("highest", 100),
    { title: "increase/min", text: ({ getValue }) => format(slopePerMinute(samples, getValue), 2) },
    { title: "maximum", text: ({ maxIncrease }) => format(maxIncrease(minutes), 2) },
    { title: "", isText: true, text: (gauge) => (isFlat(gauge, result) ? "flat" : "NOT FLAT") },
  ];
}

type Kind = readonly [string, readonly number[]];

const latencyColumn = (title: string, percent: number): Column<Kind> => ({
  title,
  text: ([, latencies]) => format(percentile(latencies, percent), 1),
});

const requestColumns: Column<Kind>[] = [
  { title: "request", isText: true, text: ([kind]) => kind },
  { title: "count", text: ([, latencies]) => format(latencies.length, 0) },
  latencyColumn("p50 ms", 50),
  latencyColumn("p99 ms", 99),
  latencyColumn("max ms", 100),
];
