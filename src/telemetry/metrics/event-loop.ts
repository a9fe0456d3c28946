import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { type Family, gauge } from "./families.js";

/** The sampling interval in milliseconds. */
const resolution = 20;
const quantiles = [0.5, 0.99, 1];

/** The length of a measuring period in milliseconds, and how many completed periods are reported. */
const period = 15_000;
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
    completed.push(lagsIn(delays));
    completed.splice(0, completed.length - reportedPeriods);
    delays.reset();
  }, period).unref();

  return {
    families() {
      const reported = [...completed, lagsIn(delays)];
      const values = quantiles.map((quantile, at) => ({
        labels: { quantile },
        value: Math.max(...reported.map((lags) => lags[at] as number)),
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

function lagsIn(delays: IntervalHistogram): Lags {
  return quantiles.map((quantile) => lagIn(delays, quantile));
}

/** The histogram measures the time between two samples; the lag is the excess over the resolution. */
function lagIn(delays: IntervalHistogram, quantile: number): number {
  const between = delays.count === 0 ? 0 : delays.percentile(quantile * 100) / 1e6;
  return Math.max(0, between - resolution) / 1_000;
}
