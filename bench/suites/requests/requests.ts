import { statfs } from "node:fs/promises";
import { arch, cpus, platform, release } from "node:os";
import { startParticipants } from "../../baselines/start.js";
import { reportProgress, type Stage } from "../../context.js";
import type { Generator } from "../../load/generator.js";
import { measure, perPart, type Sample } from "../../load/generator.js";
import type { Plan } from "../../plan.js";
import type { Findings, Goal } from "../../report/report.js";
import {
  type Column,
  format,
  type Spread,
  spreadOf,
  tableOf,
  withRange,
} from "../../report/table.js";
import { batchSize, connections, type ScenarioName, scenarios } from "../../scenarios.js";
import { seededApplications } from "../../seed.js";
import type { Server } from "../../servers.js";
import { type Trial, type TrialName, trialsOf } from "./cases.js";

/** Measures what a request costs, and what it costs servers that do less, in the same run. */
export async function measureRequests(stage: Stage, plan: Plan): Promise<Findings> {
  const { generator } = stage;
  const trials = trialsOf(await startParticipants(stage), plan.isWhole);

  reportProgress("requests: warming up");
  await runRound(trials, generator, plan.warmUp);
  const rounds: Round[] = [];
  while (rounds.length < plan.rounds) {
    reportProgress(`requests: round ${rounds.length + 1} of ${plan.rounds}`);
    rounds.push(await runRound(trials, generator, plan.seconds));
  }
  return {
    section: {
      name: "requests",
      table: tableOf(requestColumns, summarize(trials, rounds)),
      pageTables: [
        tableOf(costColumns, costsOf(rounds)),
        tableOf(comparisonColumns, comparisonsOf(trials, rounds)),
      ],
      facts: await factsOf(stage, plan),
    },
    goals: goalsOfRequests(rounds),
  };
}

/** One load after the other, so that a noisy minute of the machine touches all rows alike. */
async function runRound(
  trials: readonly Trial[],
  generator: Generator,
  seconds: number,
): Promise<Round> {
  const round = new Map<TrialName, Sample>();
  const kept = new Map<Server, readonly string[]>();
  for (const { name, participant, load } of trials) {
    const { server, label } = participant;
    try {
      const asked = load(seconds, kept.get(server) ?? []);
      await generator.prove(asked);
      const { sample, answers } = await measure(server, generator, asked);
      kept.set(server, answers);
      round.set(name, sample);
    } catch (error) {
      throw new Error(`${label}: ${(error as Error).message}`);
    }
  }
  return round;
}

/** The samples of all trials, taken one after the other. */
type Round = ReadonlyMap<TrialName, Sample>;

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

const requestColumns: readonly Column<Result>[] = [
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
function summarize(trials: readonly Trial[], rounds: readonly Round[]): Result[] {
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

const costColumns: readonly Column<Cost>[] = [
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

function costsOf(rounds: readonly Round[]): Cost[] {
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

const comparisonColumns: readonly Column<Comparison>[] = [
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

function comparisonsOf(trials: readonly Trial[], rounds: readonly Round[]): Comparison[] {
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

/** What the requests have to say about the goals. */
function goalsOfRequests(rounds: readonly Round[]): Goal[] {
  /** One figure of a trial in each round, over the same figure of another one. */
  function ratios(own: TrialName, other: TrialName, figure: keyof Sample): number[] {
    return rounds.map(
      (round) =>
        (round.get(own)?.[figure] ?? Number.NaN) / (round.get(other)?.[figure] ?? Number.NaN),
    );
  }

  function cpuAtMost(
    scenario: ScenarioName,
    atMost: number,
    rival: TrialName,
    rivalName: string,
  ): Goal {
    return {
      path: scenarios[scenario].name,
      promise: `≤ ${atMost.toFixed(1)} × ${rivalName}`,
      limit: { atMost },
      figures: ratios(`embedded/${scenario}`, rival, "cpu"),
    };
  }

  function decisionsAtLeast(scenario: ScenarioName, atLeast: number, checks: number): Goal {
    return {
      path: scenarios[scenario].name,
      promise: `≥ ${atLeast} × the decisions per CPU second of unary checks`,
      limit: { atLeast },
      figures: ratios("embedded/checkOverGrpc", `embedded/${scenario}`, "cpu").map(
        (ratio) => ratio * checks,
      ),
      digits: 1,
    };
  }

  const bare = "bare node:http";
  const grpcJs = "@grpc/grpc-js";
  const floor = "minimal node:http + lmdb";
  return [
    cpuAtMost("readByKey", 1.9, "bare/readByKey", bare),
    cpuAtMost("readByKeyOverGrpc", 1, "grpcJs/readByKeyOverGrpc", grpcJs),
    cpuAtMost("checkOverGrpc", 1, "grpcJs/checkOverGrpc", grpcJs),
    cpuAtMost("readByKeyOverConnect", 2.5, "bare/readByKeyOverConnect", bare),
    cpuAtMost("readByKeyOverGrpcWeb", 2.5, "bare/readByKeyOverConnect", bare),
    decisionsAtLeast("batchOverGrpc", 25, batchSize),
    decisionsAtLeast("batchOfOneKeyOverGrpc", 25, batchSize),
    decisionsAtLeast("streamOverGrpc", 4, 1),
    cpuAtMost("createSession", 1.5, "lmdb/createSession", floor),
    cpuAtMost("authorizeSession", 1.5, "lmdb/authorizeSession", floor),
    cpuAtMost("createApplication", 1.5, "lmdb/createApplication", floor),
    {
      path: `MongoDB: ${scenarios.readByKeyOfMany.name}`,
      promise: "≥ 3 × the requests per second of one findOne per request",
      limit: { atLeast: 3 },
      figures: ratios("mongo/readByKeyOfMany", "findOne/readByKeyOfMany", "requestsPerSecond"),
    },
  ];
}

/** The conditions of the run, in sentences. */
async function factsOf(
  { cores, folder, generator, mongo }: Stage,
  { rounds, seconds }: Plan,
): Promise<string[]> {
  return [
    `${machine()}, ${new Date().toISOString().slice(0, 10)}.`,
    `${connections} connections unless stated, ${seededApplications.toLocaleString("en")} applications with 5 rules each, one server process (\`WORKERS=1\`).`,
    `Median of ${rounds} rounds of ${seconds} s (lowest–highest).`,
    cores.server === undefined
      ? "Servers and load generator shared the cores."
      : `Servers on core ${cores.server}, load generator on core ${cores.load}${mongo ? `, MongoDB on core ${cores.database}` : ""}.`,
    `Load generated by ${generator.description}.`,
    ...((await isInMemory(folder))
      ? ["The embedded store was on tmpfs, so its writes look cheaper than they are."]
      : []),
    ...(mongo ? [] : ["MongoDB was not measured: no `mongod` was found."]),
  ];
}

function machine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() || "unknown processor";
  return `${processors.length} × ${model} (${arch()}), ${platform()} ${release()}, Node ${process.version}`;
}

const tmpfs = 0x01021994;

/** Whether a folder is kept in memory, where syncing to disk costs nothing. */
async function isInMemory(folder: string): Promise<boolean> {
  return (await statfs(folder)).type === tmpfs;
}
