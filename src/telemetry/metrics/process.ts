import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { version } from "../../config/settings.js";
import type { CacheCounts } from "../../lib/cache.js";
import { counter, type Family, gauge, type Snapshot, singleValue } from "./families.js";

/** Hits and misses of the caches of this process, which are created in several modules. */
export const cacheCounts = {
  /** Encoded responses. */
  responses: { hits: 0, misses: 0 },
  /** Compiled access rules. */
  rules: { hits: 0, misses: 0 },
  /** Decoded records; MongoDB only. */
  records: { hits: 0, misses: 0 },
} satisfies Record<string, CacheCounts>;

export function cacheFamilies(): Family[] {
  const values = (result: keyof CacheCounts) =>
    Object.entries(cacheCounts).map(([cache, counts]) => ({
      labels: { cache },
      value: counts[result],
    }));
  return [
    counter("latchkey_cache_hits_total", "Cache hits by cache.", values("hits")),
    counter("latchkey_cache_misses_total", "Cache misses by cache.", values("misses")),
  ];
}

/** The sampling interval in milliseconds. */
const resolution = 20;
const quantiles = [0.5, 0.99, 1];

/** The length of a measuring period in milliseconds. */
const period = 15_000;

/** How many completed periods are reported. */
const reportedPeriods = 4;

/** The lag at each quantile. */
type Lags = readonly number[];

interface EventLoopLag {
  families(): Family[];
  stop(): void;
}

/** Reports the worst of the last minute. A scrape resets nothing, so several scrapers see the same values. */
export function watchEventLoopLag(): EventLoopLag {
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  const completed: Lags[] = [];
  const timer = setInterval(() => {
    completed.push(readLags(delays));
    completed.splice(0, completed.length - reportedPeriods);
    delays.reset();
  }, period).unref();

  return {
    families() {
      const reported = [...completed, readLags(delays)];
      const values = quantiles.map((quantile, index) => ({
        labels: { quantile },
        value: Math.max(...reported.map((lags) => lags[index] as number)),
      }));
      return [
        gauge(
          "latchkey_event_loop_lag_seconds",
          "Event loop lag by quantile: the worst 15 seconds of the last minute, and the worst of all workers.",
          values,
          "max",
        ),
      ];
    },
    stop() {
      clearInterval(timer);
      delays.disable();
    },
  };
}

function readLags(delays: IntervalHistogram): Lags {
  return quantiles.map((quantile) => readLag(delays, quantile));
}

/** The histogram measures the time between two samples; the lag is the excess over the resolution. */
function readLag(delays: IntervalHistogram, quantile: number): number {
  const between = delays.count === 0 ? 0 : delays.percentile(quantile * 100) / 1e6;
  return Math.max(0, between - resolution) / 1_000;
}

export function buildInfo(): Family {
  const labels = { version, node: process.version };
  const help = "Version of Latchkey and Node.js. The value is always 1.";
  return gauge("latchkey_build_info", help, [{ labels, value: 1 }], "first");
}

let registry: Promise<{ getMetricsAsJSON(): Promise<unknown> }> | undefined;

/**
 * CPU, memory, file descriptors and garbage collection of this process. The
 * library is loaded on the first scrape, so it costs nothing without one.
 */
export async function readProcessMetrics(): Promise<Snapshot> {
  registry ??= createRegistry();
  return (await (await registry).getMetricsAsJSON()) as Snapshot;
}

async function createRegistry() {
  const { collectDefaultMetrics, Registry } = await import("prom-client");
  const register = new Registry();
  // Replaced by latchkey_event_loop_lag_seconds, which measures from the start and across workers.
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: 60_000 });
  for (const { name } of register.getMetricsAsArray()) {
    if (name.startsWith("nodejs_eventloop_lag")) {
      register.removeSingleMetric(name);
    }
  }
  return register;
}

/** The start time. With several processes, the earliest. */
export function startTime(): Family {
  return gauge(
    "latchkey_start_time_seconds",
    "Start time of the service in Unix seconds.",
    singleValue(Math.round(performance.timeOrigin) / 1_000),
    "min",
  );
}
