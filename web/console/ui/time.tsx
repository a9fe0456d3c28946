import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useSyncExternalStore } from "react";
import { serviceNow } from "../access/service-clock.js";

const units: readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** How far a moment is from now, in words: `3 minutes ago`, `in 2 days`. */
function distance(moment: number, now: number): string {
  const seconds = Math.round((moment - now) / 1_000);
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return words.format(Math.round(seconds / size), unit);
}

/** A moment as people say it, with the exact one to be found. */
export function Moment({
  at,
  absent = "never",
}: {
  readonly at: Timestamp | undefined;
  readonly absent?: string;
}) {
  const now = useNow(10_000);
  if (!at) {
    return <span className="muted">{absent}</span>;
  }
  const date = timestampDate(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {distance(date.getTime(), now)}
    </time>
  );
}

/** Seconds that are left, by when it is time to hurry. */
const hasFewPages = 30;
const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

/** How long it is until a moment, running down each second. */
export function TimeLeft({ until }: { readonly until: Timestamp | undefined }) {
  const now = useNow();
  if (!until) {
    return null;
  }
  const date = timestampDate(until);
  const seconds = Math.ceil((date.getTime() - now) / 1_000);
  return (
    <time
      className="time-left"
      dateTime={date.toISOString()}
      title={date.toLocaleString()}
      data-short={seconds <= hasFewPages}
    >
      {seconds > 0 ? duration(seconds) : "ended"}
    </time>
  );
}

/** `2:59`, `1:02:59`, or whole days where it is long. */
function duration(seconds: number): string {
  if (seconds >= 2 * day) {
    return `${Math.floor(seconds / day)} days`;
  }
  const hours = Math.floor(seconds / hour);
  const minutes = Math.floor((seconds % hour) / minute);
  const rest = String(seconds % minute).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

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
