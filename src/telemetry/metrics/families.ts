/** A metric family in prom-client's JSON form, which its aggregation accepts. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How the values of several processes are combined. */
  readonly aggregator: "sum" | "min" | "max" | "first";
  readonly values: readonly Value[];
}

export interface Value {
  readonly value: number;
  readonly labels: Labels;
  /** Overrides the family name, for the parts of a histogram. */
  readonly metricName?: string;
}

/** Label values are never caller input, which bounds their cardinality. */
export type Labels = Readonly<Record<string, string | number>>;

/** All metrics of a process at one moment. */
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

/** The value of a family without labels. */
export function singleValue(value: number): Value[] {
  return [{ value, labels: {} }];
}

/** Upper bounds in seconds, from a read of the embedded store to the request timeout. */
const bounds = [
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
const boundsInMilliseconds = bounds.map((bound) => bound * 1_000);

interface Histogram {
  observe(milliseconds: number): void;
  /** The values in seconds. */
  values(name: string, labels: Labels): Value[];
}

export function createHistogram(): Histogram {
  const buckets = new Float64Array(bounds.length + 1);
  // A typed array avoids allocating a heap number on every update.
  const sum = new Float64Array(1);

  return {
    observe(milliseconds) {
      let index = 0;
      while (milliseconds > (boundsInMilliseconds[index] as number)) {
        index++;
      }
      (buckets[index] as number)++;
      (sum[0] as number) += milliseconds;
    },

    values(name, labels) {
      let count = 0;
      const upTo = [...buckets].map((inBucket, index) => {
        count += inBucket;
        const le = bounds[index] ?? "+Inf";
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

/** The content type of the Prometheus text format. */
export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/** Combines the snapshots of several processes by each family's aggregator. */
export async function sumSnapshots(snapshots: readonly Snapshot[]): Promise<Snapshot> {
  return (await (await aggregate(snapshots)).getMetricsAsJSON()) as unknown as Snapshot;
}

/** Combines snapshots and formats them as Prometheus text. */
export async function formatMetrics(snapshots: readonly Snapshot[]): Promise<string> {
  return (await aggregate(snapshots)).metrics();
}

async function aggregate(snapshots: readonly Snapshot[]) {
  const { AggregatorRegistry } = await import("prom-client");
  return AggregatorRegistry.aggregate(snapshots as Snapshot[]);
}
