import type { Sample } from "./measure.js";
import { type Spread, spreadOf } from "./statistics.js";
import { type Column, format, withRange } from "./table.js";

/** Which server got which request. */
export interface Row {
  readonly server: string;
  readonly request: string;
}

/** What all rounds together showed about a row. */
export interface Result extends Row {
  readonly requestsPerSecond: Spread;
  readonly p50: Spread;
  readonly p99: Spread;
  readonly cpu: Spread;
  /** The CPU time of a request, as a multiple of the first row's in the same round. */
  readonly ratio: Spread;
}

export const requestColumns: readonly Column<Result>[] = [
  { title: "Server", isText: true, text: ({ server }) => server },
  { title: "Request", isText: true, text: ({ request }) => request },
  { title: "Requests/s", text: ({ requestsPerSecond }) => withRange(requestsPerSecond, 0) },
  { title: "p50 ms", text: ({ p50 }) => format(p50.median, 2) },
  { title: "p99 ms", text: ({ p99 }) => format(p99.median, 2) },
  { title: "CPU µs/request", text: ({ cpu }) => withRange(cpu, 0) },
  { title: "CPU × bare", text: ({ ratio }) => withRange(ratio, 1) },
];

/** Sums up rounds, each of which has a sample for each row. */
export function summarize(rows: readonly Row[], rounds: readonly (readonly Sample[])[]): Result[] {
  return rows.map((row, at) => {
    const pairs = rounds.map((round) => ({
      own: round[at] as Sample,
      first: round[0] as Sample,
    }));
    const spread = (figure: (sample: Sample) => number) =>
      spreadOf(pairs.map(({ own }) => figure(own)));
    return {
      ...row,
      requestsPerSecond: spread(({ requestsPerSecond }) => requestsPerSecond),
      p50: spread(({ p50 }) => p50),
      p99: spread(({ p99 }) => p99),
      cpu: spread(({ cpu }) => cpu),
      ratio: spreadOf(pairs.map(({ own, first }) => own.cpu / first.cpu)),
    };
  });
}
