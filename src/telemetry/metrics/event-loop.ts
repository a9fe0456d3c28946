import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks";
import { type Family, gauge } from "./families.js";

/** How often it is looked at, in milliseconds. */
const resolution = 20;
const quantiles = [0.5, 0.99, 1];

/** How long is measured before that is set aside, in milliseconds, and how much of what was set aside is told. */
const period = 15_000;
const periodsTold = 4;

/** The lag at each of the quantiles. */
type Lags = readonly number[];

/** Watches how late this process gets to what is due. */
export interface EventLoopLag {
  families(): Family[];
  stop(): void;
}

/** Tells the worst of the last minute, however often it is asked: anyone may ask, and nobody is to hide it from others. */
export function watchEventLoopLag(): EventLoopLag {
  const delays = monitorEventLoopDelay({ resolution });
  delays.enable();
  const setAside: Lags[] = [];
  const timer = setInterval(() => {
    setAside.push(lagsIn(delays));
    setAside.splice(0, setAside.length - periodsTold);
    delays.reset();
  }, period).unref();

  return {
    families() {
      const told = [...setAside, lagsIn(delays)];
      const values = quantiles.map((quantile, at) => ({
        labels: { quantile },
        value: Math.max(...told.map((lags) => lags[at] as number)),
      }));
      return [
        gauge(
          "latchkey_event_loop_lag_seconds",
          "How late work got its turn, by quantile: the worst quarter of the last minute, of several workers the worst.",
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

/** What is measured is the time between two looks, of which the lag is what is too much. */
function lagIn(delays: IntervalHistogram, quantile: number): number {
  const between = delays.count === 0 ? 0 : delays.percentile(quantile * 100) / 1e6;
  return Math.max(0, between - resolution) / 1_000;
}
