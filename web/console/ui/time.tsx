import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { useSyncExternalStore } from "react";
import { day, minute } from "../../../src/lib/time-units.js";
import { formatCountdown, formatRelative } from "./duration.js";
import { serviceNow } from "./service-clock.js";

/** Local time in the format of datetime-local inputs. */
export function toLocalInput(date: Date): string {
  const shifted = new Date(date.getTime() - date.getTimezoneOffset() * minute);
  return shifted.toISOString().slice(0, 19);
}

/** `Dec 16, 2026, 14:05`. */
const toTheMinute = new Intl.DateTimeFormat("en-US", {
  dateStyle: "medium",
  timeStyle: "short",
  hourCycle: "h23",
});

const toTheSecond = new Intl.DateTimeFormat("en-US", {
  dateStyle: "medium",
  timeStyle: "long",
  hourCycle: "h23",
});

/** `Dec 16, 2026, 14:05:30 GMT+1`. */
export function formatExact(at: Timestamp): string {
  return toTheSecond.format(timestampDate(at));
}

interface TimeProps {
  readonly at: Timestamp | undefined;
  readonly absent?: string;
}

/** A time in the past: `just now`, `8 seconds ago`. */
export function TimeAgo(props: TimeProps) {
  return <Time {...props} format={formatPast} />;
}

/** The time when something expires or expired: `Dec 16, 2026, 14:05, in 30 days`. Narrow tables leave out the date. */
export function ExpiryTime(props: TimeProps) {
  return <Time {...props} format={formatRelative} hasDate />;
}

const justNowMs = 5_000;

/** Clocks differ a little, so a time in the past never reads as a time in the future. */
function formatPast(time: number, now: number): string {
  return now - time < justNowMs ? "just now" : formatRelative(time, now);
}

interface FormattedTimeProps extends TimeProps {
  format(time: number, now: number): string;
  readonly hasDate?: boolean;
}

/** Renders again only when the text changes. */
function Time({ at, absent = "never", format, hasDate = false }: FormattedTimeProps) {
  const date = at && timestampDate(at);
  const text = useSyncExternalStore(listen, () => date && format(date.getTime(), readNow()));
  return at && date ? (
    <time dateTime={date.toISOString()} title={formatExact(at)}>
      {hasDate && <span className="time-date">{`${toTheMinute.format(date)}, `}</span>}
      {text}
    </time>
  ) : (
    <span className="muted">{absent}</span>
  );
}

/** Below this many seconds the time is highlighted. */
const urgentSeconds = 30;

/** A countdown, such as `in 2:59`. More than a day is shown as an expiry time. */
export function TimeLeft({ until }: { readonly until: Timestamp | undefined }) {
  const now = useNow();
  if (!until) {
    return null;
  }
  const date = timestampDate(until);
  const left = date.getTime() - now;
  if (left > day) {
    return <ExpiryTime at={until} />;
  }
  const seconds = Math.ceil(left / 1_000);
  return (
    <time
      className="time-left"
      dateTime={date.toISOString()}
      title={formatExact(until)}
      data-urgent={seconds <= urgentSeconds}
    >
      {seconds > 0 ? `in ${formatCountdown(seconds)}` : "expired"}
    </time>
  );
}

/** The current time of the service, updated every second. */
export function useNow(): number {
  return useSyncExternalStore(listen, readNow);
}

const tickMs = 1_000;
const listeners = new Set<() => void>();
let now = serviceNow();
let timer: ReturnType<typeof setInterval> | undefined;

/** One timer for all components. */
function listen(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(tick, tickMs);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

function tick(): void {
  now = serviceNow();
  for (const notify of listeners) {
    notify();
  }
}

/** Constant between two ticks, as React requires. Without listeners there are no ticks. */
function readNow(): number {
  if (timer === undefined && Math.abs(serviceNow() - now) >= tickMs) {
    now = serviceNow();
  }
  return now;
}
