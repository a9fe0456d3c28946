/** Figures of one name, in the form in which prom-client hands them over and adds them up. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** What becomes of the figures of several processes. */
  readonly aggregator: "sum" | "min" | "max" | "first";
  readonly values: readonly Value[];
}

export interface Value {
  readonly value: number;
  readonly labels: Labels;
  /** Where it is not the name of the family: those of the parts of a histogram. */
  readonly metricName?: string;
}

/** What figures of one name are told apart by. No value is a caller's own word: there would be no end of them. */
export type Labels = Readonly<Record<string, string | number>>;

/** All figures of a process at one moment. */
export type Snapshot = readonly Family[];

export function counter(name: string, help: string, values: readonly Value[]): Family {
  return { name, help, type: "counter", aggregator: "sum", values };
}

export function gauge(
  name: string,
  help: string,
  values: readonly Value[],
  aggregator: Family["aggregator"] = "sum",
): Family {
  return { name, help, type: "gauge", aggregator, values };
}

/** The one value of a family without labels. */
export function singleValue(value: number): Value[] {
  return [{ value, labels: {} }];
}

/** Upper bounds in seconds: from a read of the embedded store to the time limit of a call. */
const bounds = [
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
const boundsInMilliseconds = bounds.map((bound) => bound * 1_000);

/** Counts how long something took, at the price of a few comparisons. */
interface Histogram {
  observe(milliseconds: number): void;
  /** Its figures, in seconds. */
  values(name: string, labels: Labels): Value[];
}

export function createHistogram(): Histogram {
  const buckets = new Float64Array(bounds.length + 1);
  // A number that is no whole one would be made anew with each change, but not in here.
  const sum = new Float64Array(1);

  return {
    observe(milliseconds) {
      let at = 0;
      while (milliseconds > (boundsInMilliseconds[at] as number)) {
        at++;
      }
      (buckets[at] as number)++;
      (sum[0] as number) += milliseconds;
    },

    values(name, labels) {
      let count = 0;
      const upTo = [...buckets].map((inBucket, at) => {
        count += inBucket;
        const le = bounds[at] ?? "+Inf";
        return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
      });
      return [
        ...upTo,
        { metricName: `${name}_sum`, labels, value: (sum[0] as number) / 1_000 },
        { metricName: `${name}_count`, labels, value: count },
      ];
    },
  };
}

export function histogram(name: string, help: string, values: readonly Value[]): Family {
  return { name, help, type: "histogram", aggregator: "sum", values };
}

/** The type of a text of metrics. */
export const metricsType = "text/plain; version=0.0.4; charset=utf-8";

/** Adds up what several processes tell, each family in its own way. */
export async function sumSnapshots(snapshots: readonly Snapshot[]): Promise<Snapshot> {
  return (await (await aggregate(snapshots)).getMetricsAsJSON()) as unknown as Snapshot;
}

/** The sum of what several processes tell, as Prometheus reads it. */
export async function formatMetrics(snapshots: readonly Snapshot[]): Promise<string> {
  return (await aggregate(snapshots)).metrics();
}

async function aggregate(snapshots: readonly Snapshot[]) {
  const { AggregatorRegistry } = await import("prom-client");
  return AggregatorRegistry.aggregate(snapshots as Snapshot[]);
}
