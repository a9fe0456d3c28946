import { perPart, type Sample } from "../measure.js";
import { type Spread, spreadOf } from "../statistics.js";
import { type Column, format, withRange } from "../table.js";
import { type ScenarioName, scenarios } from "./scenarios.js";
import type { Trial, TrialName } from "./trials.js";

/** The samples of all trials, taken one after the other. */
export type Round = ReadonlyMap<TrialName, Sample>;

/** The figures of one row over all rounds. */
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

/** What one call, or one check of a batch, costs on each store. */
interface Cost {
  readonly call: string;
  readonly embedded: Figures | undefined;
  readonly mongo: Figures | undefined;
}

type Figures = ReturnType<typeof sumUp>;

export const costColumns: readonly Column<Cost>[] = [
  { title: "Call", isText: true, text: ({ call }) => call },
  ...(["embedded", "mongo"] as const).flatMap((store): Column<Cost>[] => {
    const name = store === "embedded" ? "Embedded" : "MongoDB";
    return [
      { title: `${name}: CPU µs`, text: (cost) => withRange(cost[store]?.cpu ?? none, 0) },
      {
        title: "per second",
        text: (cost) => format((cost[store]?.requestsPerSecond ?? none).median, 0),
      },
    ];
  }),
];

const none: Spread = { median: Number.NaN, low: Number.NaN, high: Number.NaN };

/** In the order of the page: reads, checks, writes. */
const calls: readonly ScenarioName[] = [
  "readByKey",
  "readByKeyOverHttp2",
  "readByKeyOverConnect",
  "readByKeyOverGrpcWeb",
  "readByKeyOverGrpc",
  "checkOverRest",
  "checkOverGrpc",
  "batchOverRest",
  "batchOverGrpc",
  "batchOfOneKeyOverGrpc",
  "streamOverGrpc",
  "createSession",
  "authorizeSession",
  "createApplication",
];

export function costsOf(rounds: readonly Round[]): Cost[] {
  return calls.map((scenario) => {
    const { name, parts } = scenarios[scenario];
    const figuresOn = (store: "embedded" | "mongo") =>
      figuresOf(rounds, `${store}/${scenario}`, parts?.count);
    return {
      call: parts ? `${name}, each` : name,
      embedded: figuresOn("embedded"),
      mongo: figuresOn("mongo"),
    };
  });
}

/** Another server, and Latchkey, at the same request. */
interface Comparison {
  readonly request: string;
  readonly server: string;
  readonly other: Figures;
  readonly latchkey: Figures | undefined;
}

export const comparisonColumns: readonly Column<Comparison>[] = [
  { title: "Request", isText: true, text: ({ request }) => request },
  { title: "Other server", isText: true, text: ({ server }) => server },
  { title: "its CPU µs", text: ({ other }) => withRange(other.cpu, 0) },
  { title: "Latchkey's CPU µs", text: ({ latchkey }) => withRange(latchkey?.cpu ?? none, 0) },
];

/** The comparisons that show what our own code saves, and what it costs. */
const compared: readonly TrialName[] = [
  "bare/readByKey",
  "grpcJs/readByKeyOverGrpc",
  "grpcJs/checkOverGrpc",
  "lmdb/createApplication",
  "findOne/readByKeyOfMany",
  "connectOverHttp1/readByKeyOverConnect",
  "connectOverHttp2/readByKeyOverGrpc",
];

export function comparisonsOf(trials: readonly Trial[], rounds: readonly Round[]): Comparison[] {
  return trials.flatMap(({ name, participant, scenario }) => {
    const [who, what] = name.split("/") as [string, ScenarioName];
    const other = figuresOf(rounds, name);
    if (!compared.includes(name) || !other) {
      return [];
    }
    const latchkey = figuresOf(rounds, `${who === "findOne" ? "mongo" : "embedded"}/${what}`);
    return [{ request: scenario.name, server: participant.label, other, latchkey }];
  });
}

function figuresOf(rounds: readonly Round[], name: TrialName, parts = 1): Figures | undefined {
  return rounds[0]?.has(name)
    ? sumUp(rounds, (round) => perPart(round.get(name) as Sample, parts))
    : undefined;
}
