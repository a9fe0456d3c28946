import { outage, slowest } from "./findings.js";
import type { Outcome } from "./tally.js";

/** The effects of a fault on callers, from its start to full recovery. */
export interface FaultReport {
  readonly fault: string;
  /** The longest time without a write, in milliseconds, by instance. */
  readonly outages: Readonly<Record<string, number>>;
  readonly slowest: number;
  readonly calls: number;
  readonly lies: number;
}

export function reportOf(
  fault: string,
  instances: readonly string[],
  outcomes: readonly Outcome[],
  from: number,
  lies: number,
): FaultReport {
  const until = performance.now();
  const felt = outcomes.filter(({ endedAt }) => endedAt > from);
  return {
    fault,
    outages: Object.fromEntries(
      instances.map((instance) => [instance, outage(felt, instance, from, until)]),
    ),
    slowest: slowest(felt),
    calls: felt.length,
    lies,
  };
}

/** The reports as a table. */
export function showReports(reports: readonly FaultReport[]): string {
  const names = Object.keys(reports[0]?.outages ?? {});
  const head = ["fault", ...names.map((name) => `outage of ${name}`), "slowest success"];
  const ms = (time: number) => `${Math.round(time)} ms`;
  const rows = reports.map(({ fault, outages, slowest, calls, lies }) => [
    fault,
    ...names.map((name) => ms(outages[name] as number)),
    ms(slowest),
    String(calls),
    String(lies),
  ]);
  const all = [[...head, "calls", "lies"], ...rows];
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
