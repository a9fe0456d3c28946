import { type Door, type Outcome, unavailable } from "./tally.js";

/** A period in which an instance was down, in the time of `performance.now()`. */
export interface Downtime {
  readonly instance: string;
  readonly from: number;
  readonly until: number;
}

/** Acceptable errors while the store is available. */
const expectedRefusals: Readonly<Record<string, readonly string[]>> = {
  "delete again": ["application_not_found"],
  read: ["application_not_found"],
  "live key": ["unauthenticated"],
  "ended key": ["unauthenticated"],
};

/** Whether a call got any response. */
const isAnswered = ({ end }: Outcome) => end !== "lost" && end !== "hung";

/**
 * Returns when an instance was reachable again over one protocol: the end of the
 * first successful call after its downtime. Until then a client may still be
 * reconnecting.
 */
function reachedAgain(outcomes: readonly Outcome[], down: Downtime, protocol: string): number {
  const after = outcomes.filter(
    (one) =>
      one.instance === down.instance &&
      one.protocol === protocol &&
      one.begunAt > down.until &&
      isAnswered(one),
  );
  return after.reduce((first, { endedAt }) => Math.min(first, endedAt), Number.POSITIVE_INFINITY);
}

/** The unexpected responses, one per line. */
export function unexpected(outcomes: readonly Outcome[], downtimes: readonly Downtime[]): string[] {
  const protocols = [...new Set(outcomes.map(({ protocol }) => protocol))];
  const unreached = downtimes.flatMap((down) =>
    protocols.map((protocol) => ({
      ...{ instance: down.instance, protocol, from: down.from },
      until: reachedAgain(outcomes, down, protocol),
    })),
  );
  const wasDown = ({ instance, protocol, begunAt, endedAt }: Outcome) =>
    unreached.some(
      (one) =>
        one.instance === instance &&
        one.protocol === protocol &&
        endedAt > one.from &&
        begunAt < one.until,
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
    .map(({ instance, protocol, what, end, hasRetryHint, begunAt, endedAt }) => {
      const hint = hasRetryHint ? " with a hint" : "";
      const took = Math.round(endedAt - begunAt);
      return `${instance} over ${protocol} answered ${end}${hint} to ${what} after ${took} ms`;
    });
}

/** The duration of the slowest success, in milliseconds. */
export function slowest(outcomes: readonly Outcome[]): number {
  const successes = outcomes.filter(({ end }) => end === "done");
  return Math.max(0, ...successes.map(({ begunAt, endedAt }) => endedAt - begunAt));
}

/** The names of writing calls of the load that are repeated. */
const writes = /^(create|update|regenerate|delete|disable|open|authorize|revoke)( again)?$/;

/** Whether an instance responded over a protocol to a call that started after a moment. */
export function hasAnswered(outcomes: readonly Outcome[], door: Door, after: number): boolean {
  return outcomes.some(
    (one) =>
      one.begunAt > after &&
      one.instance === door.instance &&
      one.protocol === door.protocol &&
      isAnswered(one),
  );
}

/** Whether an instance completed a write that started after a moment. */
export function hasWritten(outcomes: readonly Outcome[], instance: string, after: number): boolean {
  return outcomes.some(
    (one) => one.begunAt > after && one.end === "done" && isWriteOf(one, instance),
  );
}

const isWriteOf = (one: Outcome, instance: string) =>
  one.instance === instance && writes.test(one.what);

/** The longest time without a write between two moments, in milliseconds. */
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
