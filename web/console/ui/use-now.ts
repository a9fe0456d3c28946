import { useSyncExternalStore } from "react";
import { serviceNow } from "../access/service-time.js";

/** One for all that go on at the same pace, however many are shown. */
interface Ticker {
  now(): number;
  listen(listener: () => void): () => void;
}

const tickers = new Map<number, Ticker>();

/** The present moment by the clock of the service, which goes on while it is shown. */
export function useNow(interval = 1_000): number {
  const ticker = tickerFor(interval);
  return useSyncExternalStore(ticker.listen, ticker.now);
}

function tickerFor(interval: number): Ticker {
  const found = tickers.get(interval) ?? createTicker(interval);
  tickers.set(interval, found);
  return found;
}

function createTicker(interval: number): Ticker {
  const listeners = new Set<() => void>();
  let now = serviceNow();
  let timer: ReturnType<typeof setInterval> | undefined;

  function tick(): void {
    now = serviceNow();
    for (const listener of listeners) {
      listener();
    }
  }

  return {
    now() {
      // It stands still while nobody listens, and otherwise between two ticks.
      if (timer === undefined && serviceNow() - now >= interval) {
        now = serviceNow();
      }
      return now;
    },
    listen(listener) {
      listeners.add(listener);
      timer ??= setInterval(tick, interval);
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0) {
          clearInterval(timer);
          timer = undefined;
        }
      };
    },
  };
}
