import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { version } from "../../config/settings.js";
import { cacheCounts } from "../../lib/cache.js";

export function addCacheMetrics(registry: Registry): void {
  for (const result of ["hits", "misses"] as const) {
    new Counter({
      name: `latchkey_cache_${result}_total`,
      help: `Cache ${result} by cache.`,
      labelNames: ["cache"],
      registers: [registry],
      collect() {
        this.reset();
        for (const [cache, counts] of cacheCounts) {
          this.inc({ cache }, counts[result]);
        }
      },
    });
  }
}

/** The sampling interval in milliseconds. */
const resolution = 20;
const percentiles = [50, 99, 100];

/** The length of a measuring period in milliseconds. */
const period = 15_000;

/** How many completed periods are reported. */
const reportedPeriods = 4;

/** The lag at each percentile. */
type Lags = readonly number[];

/**
 * Reports the worst of the last minute. A scrape resets nothing, so several
 * scrapers see the same values. Returns a function that stops it.
 */
export function watchEventLoopLag(registry: Registry): () => void {
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  const completed: Lags[] = [];
  const timer = setInterval(() => {
    completed.push(readLags(delays));
    completed.splice(0, completed.length - reportedPeriods);
    delays.reset();
  }, period).unref();

  new Gauge({
    name: "latchkey_event_loop_lag_seconds",
    help: "Event loop lag by percentile: the worst 15 seconds of the last minute, and the worst of all workers.",
    // Not `quantile`: that label is reserved for summaries.
    labelNames: ["percentile"],
    registers: [registry],
    aggregator: "max",
    collect() {
      const reported = [...completed, readLags(delays)];
      for (const [index, percentile] of percentiles.entries()) {
        this.set({ percentile }, Math.max(...reported.map((lags) => lags[index] as number)));
      }
    },
  });

  return () => {
    clearInterval(timer);
    delays.disable();
  };
}

function readLags(delays: IntervalHistogram): Lags {
  return percentiles.map((percentile) => readLag(delays, percentile));
}

/** The histogram measures the time between two samples; the lag is the excess over the resolution. */
function readLag(delays: IntervalHistogram, percentile: number): number {
  const between = delays.count === 0 ? 0 : delays.percentile(percentile) / 1e6;
  return Math.max(0, between - resolution) / 1_000;
}

export function addBuildInfo(registry: Registry): void {
  new Gauge({
    name: "latchkey_build_info",
    help: "Version of Latchkey and Node.js. The value is always 1.",
    labelNames: ["version", "node"],
    registers: [registry],
    aggregator: "first",
  }).set({ version, node: process.version }, 1);
}

/** The start time. With several processes, the earliest. */
export function addStartTime(registry: Registry): void {
  new Gauge({
    name: "latchkey_start_time_seconds",
    help: "Start time of the service in Unix seconds.",
    registers: [registry],
    aggregator: "min",
  }).set(Math.round(performance.timeOrigin) / 1_000);
}

let processRegistry: Registry | undefined;

/** CPU, memory, file descriptors and garbage collection, measured once even if the process runs several servers. */
export function processMetrics(): Registry {
  processRegistry ??= createProcessRegistry();
  return processRegistry;
}

function createProcessRegistry(): Registry {
  const register = new Registry();
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: 60_000 });
  for (const { name } of register.getMetricsAsArray()) {
    // latchkey_event_loop_lag_seconds measures from the start and across workers. The other
    // gauges have the suffix of counters.
    if (/^nodejs_(eventloop_lag|active_.*_total$)/.test(name)) {
      register.removeSingleMetric(name);
    }
  }
  return register;
}
