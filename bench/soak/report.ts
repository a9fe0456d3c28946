import { asText, type Column, format, percentile, spreadOf, tableOf } from "../report/table.js";
import type { BesideInvalid } from "./load.js";
import type { Record } from "./recorder.js";
import { risePerMinute, type Sample } from "./recorder.js";

interface SoakResult {
  readonly minutes: number;
  /** Journeys a second. */
  readonly rate: number;
  readonly record: Pick<Record, "latencies" | "errors">;
  readonly samples: readonly Sample[];
  readonly besideInvalid: BesideInvalid;
}

/** How long a call may take at most beside many large ones that are not valid, in milliseconds. */
const longestBesideInvalid = 3_000;

/** What has to stay flat. */
interface Gauge {
  readonly name: string;
  of(sample: Sample): number;
  /** By how much it may rise in a minute: over a short time it has not settled yet. */
  mostRise(minutes: number): number;
}

const settledAfter = 30;

const gauges: readonly Gauge[] = [
  {
    name: "memory in MiB",
    of: ({ memory }) => memory,
    mostRise: (minutes) => (minutes < settledAfter ? 3 : 0.5),
  },
  {
    name: "open files",
    of: ({ files }) => files,
    mostRise: (minutes) => (minutes < settledAfter ? 1 : 0.5),
  },
];

/** A rise that is no number, since there was too little to see, is not flat. */
const isFlat = ({ of, mostRise }: Gauge, { samples, minutes }: SoakResult) =>
  risePerMinute(samples, of) <= mostRise(minutes);

/** What is wrong with a result, in words. */
export function faultsOf(result: SoakResult): string[] {
  const { latencies, errors } = result.record;
  return [
    ...(errors.count > 0
      ? [[`${errors.count} journeys went wrong, the first:`, ...errors.examples].join("\n  ")]
      : []),
    ...(latencies.size === 0 ? ["no request was answered"] : []),
    ...gauges
      .filter((gauge) => !isFlat(gauge, result))
      .map(({ name, of, mostRise }) => {
        const rise = risePerMinute(result.samples, of).toFixed(2);
        return `${name}: rises by ${rise} a minute, and may by ${mostRise(result.minutes)}`;
      }),
    ...(slowestBesideInvalid(result) <= longestBesideInvalid
      ? []
      : [`${besideInvalidText(result)}, and may take ${longestBesideInvalid} ms`]),
  ];
}

/** Without any call it is no number, and not short. */
function slowestBesideInvalid({ besideInvalid: { latencies } }: SoakResult): number {
  return percentile(latencies, 100);
}

function besideInvalidText(result: SoakResult): string {
  const { refused, latencies } = result.besideInvalid;
  const slowest = format(slowestBesideInvalid(result), 1);
  return `beside ${format(refused, 0)} large requests that are not valid, the slowest of ${format(latencies.length, 0)} calls took ${slowest} ms`;
}

/** What a soak has shown, as tables. */
export function report(result: SoakResult): string {
  const { minutes, rate, record } = result;
  const kinds = [...record.latencies].sort(([, a], [, b]) => b.length - a.length);
  const requests = kinds.reduce((sum, [, latencies]) => sum + latencies.length, 0);
  const heading = [
    `${format(requests, 0)} requests in ${minutes} minutes`,
    `${Math.round(rate)} journeys a second`,
    `${record.errors.count} errors`,
  ];
  return [
    heading.join(", "),
    asText(tableOf(gaugeColumns(result), gauges)),
    asText(tableOf(requestColumns, kinds)),
    besideInvalidText(result),
  ].join("\n\n");
}

function gaugeColumns(result: SoakResult): Column<Gauge>[] {
  const { samples, minutes } = result;
  const spread = ({ of }: Gauge) => spreadOf(samples.map(of));
  return [
    { title: "all processes", isText: true, text: ({ name }) => name },
    { title: "median", text: (gauge) => format(spread(gauge).median, 1) },
    { title: "lowest", text: (gauge) => format(spread(gauge).low, 1) },
    { title: "highest", text: (gauge) => format(spread(gauge).high, 1) },
    { title: "rise a minute", text: ({ of }) => format(risePerMinute(samples, of), 2) },
    { title: "at most", text: ({ mostRise }) => format(mostRise(minutes), 2) },
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
