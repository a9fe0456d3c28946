import type { Family, Labels, Value } from "./family.js";

/** Upper bounds in seconds: from a read of the embedded store to the time limit of a call. */
const bounds = [
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5, 5, 10],
];
const boundsInMilliseconds = bounds.map((bound) => bound * 1_000);

/** Counts how long something took, at the price of a few comparisons. */
export interface Histogram {
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
