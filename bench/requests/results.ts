import { perPart, type Sample } from "../measure.js";
import { type Spread, spreadOf } from "../statistics.js";
import { type Column, format, withRange } from "../table.js";
import type { Trial, TrialName } from "./trials.js";

/** The samples of all trials, taken one after the other. */
export type Round = ReadonlyMap<TrialName, Sample>;

/** What all rounds together showed about a row. */
interface Result {
  readonly server: string;
  readonly request: string;
  readonly requestsPerSecond: Spread;
  readonly p50: Spread;
  readonly p99: Spread;
  readonly cpu: Spread;
  /** The CPU time of a request, as a multiple of the bare server's in the same round. */
  readonly ratio: Spread;
  readonly memory: Spread;
}

export const requestColumns: readonly Column<Result>[] = [
  { title: "Server", isText: true, text: ({ server }) => server },
  { title: "Request", isText: true, text: ({ request }) => request },
  { title: "Requests/s", text: ({ requestsPerSecond }) => withRange(requestsPerSecond, 0) },
  { title: "p50 ms", text: ({ p50 }) => format(p50.median, 2) },
  { title: "p99 ms", text: ({ p99 }) => format(p99.median, 2) },
  { title: "CPU µs/request", text: ({ cpu }) => withRange(cpu, 0) },
  { title: "CPU × bare", text: ({ ratio }) => withRange(ratio, 1) },
  { title: "RSS MB", text: ({ memory }) => format(memory.median, 0) },
];

const first: TrialName = "bare/readByKey";

/** A row for each trial, and one for the parts of its requests where they have parts. */
export function summarize(trials: readonly Trial[], rounds: readonly Round[]): Result[] {
  return trials.flatMap(({ name, participant, scenario }) => {
    const row = (request: string, figure: (sample: Sample) => Sample): Result => ({
      server: participant.label,
      request,
      ...sumUp(rounds, (round) => figure(round.get(name) as Sample)),
    });
    const { parts } = scenario;
    const whole = row(scenario.name, (sample) => sample);
    return parts ? [whole, row(parts.name, (sample) => perPart(sample, parts.count))] : [whole];
  });
}

function sumUp(rounds: readonly Round[], sampleOf: (round: Round) => Sample) {
  const spread = (figure: (sample: Sample) => number) =>
    spreadOf(rounds.map((round) => figure(sampleOf(round))));
  return {
    requestsPerSecond: spread(({ requestsPerSecond }) => requestsPerSecond),
    p50: spread(({ p50 }) => p50),
    p99: spread(({ p99 }) => p99),
    cpu: spread(({ cpu }) => cpu),
    ratio: spreadOf(
      rounds.map((round) => sampleOf(round).cpu / (round.get(first)?.cpu ?? Number.NaN)),
    ),
    memory: spread(({ memory }) => memory),
  };
}
