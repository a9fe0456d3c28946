import { type Outcome, unavailable } from "./tally.js";

/** A span of time in which an instance is down, as `performance.now()` tells time. */
export interface Downtime {
  readonly instance: string;
  readonly from: number;
  readonly until: number;
}

/** What a call may be answered beside what it asks for, where the store can be reached. */
const expectedRefusals: Readonly<Record<string, readonly string[]>> = {
  "delete again": ["application_not_found"],
  read: ["application_not_found"],
  "live key": ["unauthenticated"],
  "ended key": ["unauthenticated"],
};

/**
 * How long after an instance is back a client may still wait to connect to it
 * anew, in milliseconds: the longer nobody answered, the longer it waits
 * between two tries.
 */
const reconnecting = ({ from, until }: Downtime) => Math.max(5_000, until - from);

/** The answers that nobody should get, told in a line each. */
export function unexpected(outcomes: readonly Outcome[], downtimes: readonly Downtime[]): string[] {
  const wasDown = ({ instance, begunAt, endedAt }: Outcome) =>
    downtimes.some(
      (down) =>
        down.instance === instance &&
        begunAt < down.until + reconnecting(down) &&
        endedAt > down.from,
    );
  const isExpected = (outcome: Outcome) => {
    const { what, end, hasRetryHint } = outcome;
    return (
      end === "done" ||
      expectedRefusals[what]?.includes(end) ||
      (unavailable.includes(end) && hasRetryHint) ||
      (end === "lost" && wasDown(outcome))
    );
  };
  return outcomes
    .filter((outcome) => !isExpected(outcome))
    .map(({ instance, what, end, hasRetryHint, begunAt, endedAt }) => {
      const hint = hasRetryHint ? " with a hint" : "";
      return `${instance} answered ${end}${hint} to ${what} after ${Math.round(endedAt - begunAt)} ms`;
    });
}

/** How long the slowest success took, in milliseconds. */
export function slowest(outcomes: readonly Outcome[]): number {
  const successes = outcomes.filter(({ end }) => end === "done");
  return Math.max(0, ...successes.map(({ begunAt, endedAt }) => endedAt - begunAt));
}

/** Under which names the load calls what writes, and calls it again. */
const writes = /^(create|update|regenerate|delete|disable|open|authorize|revoke)( again)?$/;

/** Whether an instance has made a write that was begun after a moment. */
export function hasWritten(outcomes: readonly Outcome[], instance: string, after: number): boolean {
  return outcomes.some(
    (one) => one.begunAt > after && one.end === "done" && isWriteOf(one, instance),
  );
}

const isWriteOf = (one: Outcome, instance: string) =>
  one.instance === instance && writes.test(one.what);

/** The longest time in which an instance made no write between two moments, in milliseconds. */
export function outage(
  outcomes: readonly Outcome[],
  instance: string,
  from: number,
  until: number,
): number {
  const made = outcomes
    .filter((one) => one.end === "done" && isWriteOf(one, instance))
    .map(({ endedAt }) => endedAt)
    .filter((at) => at > from && at < until)
    .sort((one, other) => one - other);
  const moments = [from, ...made, until];
  return Math.max(...moments.slice(1).map((at, index) => at - (moments[index] as number)));
}
