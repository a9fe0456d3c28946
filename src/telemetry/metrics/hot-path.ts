/**
 * Metrics for the events of every call. prom-client builds a string of the labels
 * for each event, which takes 20 times as long as these plain numbers. See
 * docs/explanation/performance.md.
 */
import { Counter, type CounterConfiguration, Histogram, type LabelValues } from "prom-client";

/** A series of a counter. */
interface Series<Label extends string> {
  readonly labels: LabelValues<Label>;
  value: number;
}

/** Registers a counter. Returns a function that adds a series to it, to be increased directly. */
export function createHotCounter<Label extends string>(
  config: CounterConfiguration<Label>,
): (labels: LabelValues<Label>) => Series<Label> {
  const all: Series<Label>[] = [];
  new Counter({
    ...config,
    collect() {
      this.reset();
      for (const { labels, value } of all) {
        this.inc(labels, value);
      }
    },
  });
  return (labels) => {
    const series = { labels, value: 0 };
    all.push(series);
    return series;
  };
}

/** Upper bounds in seconds, from a read of the embedded store to the request timeout. */
const buckets = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const boundsInMilliseconds = buckets.map((bound) => bound * 1_000);

/** The durations of one kind of event. */
class Durations<Label extends string> {
  private readonly counts = new Float64Array(buckets.length + 1);
  // A typed array avoids allocating a heap number on every update.
  private readonly sum = new Float64Array(1);

  constructor(private readonly labels: LabelValues<Label>) {}

  observe(milliseconds: number): void {
    let index = 0;
    while (milliseconds > (boundsInMilliseconds[index] as number)) {
      index++;
    }
    (this.counts[index] as number)++;
    (this.sum[0] as number) += milliseconds;
  }

  /** The values in seconds. */
  values(name: string) {
    const { labels } = this;
    let count = 0;
    const upTo = Array.from(this.counts, (inBucket, index) => {
      count += inBucket;
      const le = buckets[index] ?? "+Inf";
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...upTo,
      { metricName: `${name}_sum`, labels, value: (this.sum[0] as number) / 1_000 },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

/** A histogram of durations with a series per kind of event. */
export class DurationHistogram<Label extends string> extends Histogram<Label> {
  private readonly all: Durations<Label>[] = [];

  add(labels: LabelValues<Label>): Durations<Label> {
    const durations = new Durations(labels);
    this.all.push(durations);
    return durations;
  }

  override async get() {
    const metric = await super.get();
    return { ...metric, values: this.all.flatMap((durations) => durations.values(metric.name)) };
  }
}
