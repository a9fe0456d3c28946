import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useSyncExternalStore } from "react";
import { serviceNow } from "../sign-in/connection.js";

const units: readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const words = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** `3 minutes ago`, `in 2 days`. */
function formatRelative(time: number, now: number): string {
  const seconds = Math.round((time - now) / 1_000);
  const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return words.format(Math.round(seconds / size), unit);
}

/** Local time in the format of datetime-local inputs. */
export function toLocalInput(date: Date): string {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 19);
}

interface RelativeTimeProps {
  readonly at: Timestamp | undefined;
  readonly absent?: string;
}

/** A time relative to now, with the exact time as a tooltip. */
export function RelativeTime({ at, absent = "never" }: RelativeTimeProps) {
  return <Time at={at} absent={absent} format={formatRelative} />;
}

/** A time in the past. Clocks differ a little, so it never reads as a time in the future. */
export function TimeAgo({ at, absent = "never" }: RelativeTimeProps) {
  return <Time at={at} absent={absent} format={formatPast} />;
}

/** The current time is refreshed at this interval. */
const refreshMs = 10_000;

function formatPast(time: number, now: number): string {
  return now - time < refreshMs ? "just now" : formatRelative(time, now);
}

interface TimeProps extends RelativeTimeProps {
  format(time: number, now: number): string;
}

function Time({ at, absent, format }: TimeProps) {
  const now = useNow(refreshMs);
  if (!at) {
    return <span className="muted">{absent}</span>;
  }
  const date = timestampDate(at);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {format(date.getTime(), now)}
    </time>
  );
}

/** Below this many seconds the time is highlighted. */
const urgentSeconds = 30;
const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

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
      data-short={seconds <= urgentSeconds}
    >
      {seconds > 0 ? duration(seconds) : "expired"}
    </time>
  );
}

/** `2:59`, `1:02:59`, or whole days. */
function duration(seconds: number): string {
  if (seconds >= 2 * day) {
    return `${Math.floor(seconds / day)} days`;
  }
  const hours = Math.floor(seconds / hour);
  const minutes = Math.floor((seconds % hour) / minute);
  const rest = String(seconds % minute).padStart(2, "0");
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

/** One timer for all components with the same interval. */
interface Ticker {
  now(): number;
  listen(listener: () => void): () => void;
}

const tickers = new Map<number, Ticker>();

/** The current time of the service, updated at an interval. */
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
      // Between two ticks the value is constant. Without listeners there are no ticks.
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
