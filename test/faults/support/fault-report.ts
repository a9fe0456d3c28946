import { type Endpoint, type Outcome, unavailable } from "./call-recorder.js";

/** A period in which an instance was down, by `performance.now()`. */
export interface Downtime {
  readonly instance: string;
  readonly from: number;
  readonly until: number;
}

/** The effects of a fault on callers, from its start to full recovery. */
export interface FaultReport {
  readonly fault: string;
  /** The longest time without a write, in milliseconds, by instance. */
  readonly outages: Readonly<Record<string, number>>;
  readonly slowest: number;
  readonly calls: number;
}

export function createFaultReport(
  fault: string,
  instances: readonly string[],
  outcomes: readonly Outcome[],
  from: number,
): FaultReport {
  const until = performance.now();
  const affected = outcomes.filter(({ endedAt }) => endedAt > from);
  return {
    fault,
    outages: Object.fromEntries(
      instances.map((instance) => [instance, getLongestOutage(affected, instance, from, until)]),
    ),
    slowest: getSlowestSuccess(affected),
    calls: affected.length,
  };
}

/** Formats the reports as a table. */
export function formatReports(reports: readonly FaultReport[]): string {
  const names = Object.keys(reports[0]?.outages ?? {});
  const head = ["fault", ...names.map((name) => `outage of ${name}`), "slowest success"];
  const ms = (time: number) => `${Math.round(time)} ms`;
  const rows = reports.map(({ fault, outages, slowest, calls }) => [
    fault,
    ...names.map((name) => ms(outages[name] as number)),
    ms(slowest),
    String(calls),
  ]);
  const all = [[...head, "calls"], ...rows];
  const widths = head.map((_, at) => Math.max(...all.map((row) => row[at]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Returns the longest time without a write between two moments, in milliseconds. */
function getLongestOutage(
  outcomes: readonly Outcome[],
  instance: string,
  from: number,
  until: number,
): number {
  const written = outcomes
    .filter((outcome) => outcome.result === "done" && isWriteOn(outcome, instance))
    .map(({ endedAt }) => endedAt)
    .filter((at) => at > from && at < until)
    .sort((a, b) => a - b);
  const moments = [from, ...written, until];
  return Math.max(...moments.slice(1).map((at, index) => at - (moments[index] as number)));
}

function getSlowestSuccess(outcomes: readonly Outcome[]): number {
  const successes = outcomes.filter(({ result }) => result === "done");
  return Math.max(0, ...successes.map(({ startedAt, endedAt }) => endedAt - startedAt));
}

/** The writing operations of the load. */
const writes = /^(create|rename|regenerate|delete|disable|enable|open|authorize|revoke-all)$/;

const isWriteOn = (outcome: Outcome, instance: string) =>
  outcome.instance === instance && writes.test(outcome.operation);

/** Whether an instance completed a write that started after a moment. */
export function hasWritten(outcomes: readonly Outcome[], instance: string, after: number): boolean {
  return outcomes.some(
    (outcome) =>
      outcome.startedAt > after && outcome.result === "done" && isWriteOn(outcome, instance),
  );
}

const hasResponse = ({ result }: Outcome) => result !== "lost" && result !== "hung";

/** Whether an endpoint responded to a call that started after a moment. */
export function hasResponded(
  outcomes: readonly Outcome[],
  endpoint: Pick<Endpoint, "instance" | "protocol">,
  after: number,
): boolean {
  return outcomes.some((outcome) => isResponseAfter(outcome, endpoint, after));
}

const isResponseAfter = (
  outcome: Outcome,
  { instance, protocol }: Pick<Endpoint, "instance" | "protocol">,
  after: number,
) =>
  outcome.startedAt > after &&
  outcome.instance === instance &&
  outcome.protocol === protocol &&
  hasResponse(outcome);

/** Returns the unexpected outcomes, one per line. `refusals` are results that the caller judges itself. */
export function findUnexpected(
  outcomes: readonly Outcome[],
  downtimes: readonly Downtime[],
  refusals: readonly string[] = [],
): string[] {
  const protocols = [...new Set(outcomes.map(({ protocol }) => protocol))];
  const unreachable = downtimes.flatMap((down) =>
    protocols.map((protocol) => ({
      instance: down.instance,
      protocol,
      from: down.from,
      until: findReconnection(outcomes, down, protocol),
    })),
  );
  const wasUnreachable = ({ instance, protocol, startedAt, endedAt }: Outcome) =>
    unreachable.some(
      (period) =>
        period.instance === instance &&
        period.protocol === protocol &&
        endedAt > period.from &&
        startedAt < period.until,
    );
  const isExpected = (outcome: Outcome) => {
    const { result, hasRetryHint } = outcome;
    return (
      result === "done" ||
      refusals.includes(result) ||
      (unavailable.includes(result) && hasRetryHint) ||
      (result === "lost" && wasUnreachable(outcome))
    );
  };
  return outcomes
    .filter((outcome) => !isExpected(outcome))
    .map(({ instance, protocol, operation, result, hasRetryHint, startedAt, endedAt }) => {
      const hint = hasRetryHint ? " with a retry hint" : "";
      const took = Math.round(endedAt - startedAt);
      return `${instance} over ${protocol} returned ${result}${hint} for ${operation} after ${took} ms`;
    });
}

/**
 * Returns the end of the first call that got a response after a downtime.
 * Until then a client may still be reconnecting.
 */
function findReconnection(
  outcomes: readonly Outcome[],
  { instance, until }: Downtime,
  protocol: string,
): number {
  const endpoint = { instance, protocol };
  return outcomes
    .filter((outcome) => isResponseAfter(outcome, endpoint, until))
    .reduce((first, { endedAt }) => Math.min(first, endedAt), Number.POSITIVE_INFINITY);
}
