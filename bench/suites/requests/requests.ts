import { statfs } from "node:fs/promises";
import { arch, cpus, platform, release } from "node:os";
import { startServersUnderTest } from "../../baselines/start.js";
import { type BenchContext, reportProgress } from "../../context.js";
import type { LoadGenerator } from "../../load/generator.js";
import { measure, perItem, type Sample } from "../../load/generator.js";
import type { Plan } from "../../plan.js";
import type { Goal, SuiteResult } from "../../report/report.js";
import {
  type Column,
  createTable,
  format,
  formatSpread,
  type Spread,
  spreadOf,
} from "../../report/table.js";
import { batchSize, connections, type ScenarioName, scenarios } from "../../scenarios.js";
import { seededApplications } from "../../seed.js";
import type { Server } from "../../servers.js";
import { type BenchCase, type CaseName, selectCases } from "./cases.js";

/** Measures the cost of requests and compares it with baseline servers in the same run. */
export async function measureRequests(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { generator } = context;
  const cases = selectCases(await startServersUnderTest(context), plan.isFull);

  reportProgress("requests: warming up");
  await runRound(cases, generator, plan.warmup);
  const rounds: Round[] = [];
  while (rounds.length < plan.rounds) {
    reportProgress(`requests: round ${rounds.length + 1} of ${plan.rounds}`);
    rounds.push(await runRound(cases, generator, plan.seconds));
  }
  return {
    section: {
      name: "requests",
      table: createTable(requestColumns, summarize(cases, rounds)),
      pageTables: [
        createTable(costColumns, createCosts(rounds)),
        createTable(comparisonColumns, createComparisons(cases, rounds)),
      ],
      notes: await createNotes(context, plan),
    },
    goals: createGoals(rounds),
  };
}

/** Runs every case once, so that noise on the machine affects all rows. */
async function runRound(
  cases: readonly BenchCase[],
  generator: LoadGenerator,
  seconds: number,
): Promise<Round> {
  const round = new Map<CaseName, Sample>();
  const previousResponses = new Map<Server, readonly string[]>();
  for (const { name, target, load: createLoad } of cases) {
    const { server, label } = target;
    try {
      const load = createLoad(seconds, previousResponses.get(server) ?? []);
      await generator.verify(load);
      const { sample, responses } = await measure(server, generator, load);
      previousResponses.set(server, responses);
      round.set(name, sample);
    } catch (error) {
      throw new Error(`${label}: ${(error as Error).message}`);
    }
  }
  return round;
}

type Round = ReadonlyMap<CaseName, Sample>;

/** One row: the samples of all rounds. */
interface Result {
  readonly server: string;
  readonly request: string;
  readonly requestsPerSecond: Spread;
  readonly p50: Spread;
  readonly p99: Spread;
  readonly cpu: Spread;
  /** The CPU time relative to the bare server in the same round. */
  readonly ratio: Spread;
  readonly memory: Spread;
}

const requestColumns: readonly Column<Result>[] = [
  { title: "Server", isText: true, text: ({ server }) => server },
  { title: "Request", isText: true, text: ({ request }) => request },
  { title: "Requests/s", text: ({ requestsPerSecond }) => formatSpread(requestsPerSecond, 0) },
  { title: "p50 ms", text: ({ p50 }) => format(p50.median, 2) },
  { title: "p99 ms", text: ({ p99 }) => format(p99.median, 2) },
  { title: "CPU µs/request", text: ({ cpu }) => formatSpread(cpu, 0) },
  { title: "CPU × bare", text: ({ ratio }) => formatSpread(ratio, 1) },
  { title: "RSS MB", text: ({ memory }) => format(memory.median, 0) },
];

const bareCase: CaseName = "bare/readByKey";

/** One row per case, and one for the items of batches. */
function summarize(cases: readonly BenchCase[], rounds: readonly Round[]): Result[] {
  return cases.flatMap(({ name, target, scenario }) => {
    const row = (request: string, select: (sample: Sample) => Sample): Result => ({
      server: target.label,
      request,
      ...summarizeSamples(rounds, (round) => select(round.get(name) as Sample)),
    });
    const { items } = scenario;
    const requestRow = row(scenario.name, (sample) => sample);
    return items
      ? [requestRow, row(items.name, (sample) => perItem(sample, items.count))]
      : [requestRow];
  });
}

function summarizeSamples(rounds: readonly Round[], getSample: (round: Round) => Sample) {
  const spread = (select: (sample: Sample) => number) =>
    spreadOf(rounds.map((round) => select(getSample(round))));
  return {
    requestsPerSecond: spread(({ requestsPerSecond }) => requestsPerSecond),
    p50: spread(({ p50 }) => p50),
    p99: spread(({ p99 }) => p99),
    cpu: spread(({ cpu }) => cpu),
    ratio: spreadOf(
      rounds.map((round) => getSample(round).cpu / (round.get(bareCase)?.cpu ?? Number.NaN)),
    ),
    memory: spread(({ memory }) => memory),
  };
}

/** The cost of one call, or one check of a batch, on each store. */
interface Cost {
  readonly call: string;
  readonly embedded: Summary | undefined;
  readonly mongo: Summary | undefined;
}

type Summary = ReturnType<typeof summarizeSamples>;

const costColumns: readonly Column<Cost>[] = [
  { title: "Call", isText: true, text: ({ call }) => call },
  ...(["embedded", "mongo"] as const).flatMap((store): Column<Cost>[] => {
    const name = store === "embedded" ? "Embedded" : "MongoDB";
    return [
      { title: `${name}: CPU µs`, text: (cost) => formatSpread(cost[store]?.cpu ?? none, 0) },
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
  "batchSingleKeyOverGrpc",
  "streamOverGrpc",
  "createSession",
  "authorizeSession",
  "createApplication",
];

function createCosts(rounds: readonly Round[]): Cost[] {
  return calls.map((scenario) => {
    const { name, items } = scenarios[scenario];
    const summarizeStore = (store: "embedded" | "mongo") =>
      summarizeCase(rounds, `${store}/${scenario}`, items?.count);
    return {
      call: items ? `${name}, each` : name,
      embedded: summarizeStore("embedded"),
      mongo: summarizeStore("mongo"),
    };
  });
}

/** A baseline and Latchkey with the same request. */
interface Comparison {
  readonly request: string;
  readonly server: string;
  readonly baseline: Summary;
  readonly latchkey: Summary | undefined;
}

const comparisonColumns: readonly Column<Comparison>[] = [
  { title: "Request", isText: true, text: ({ request }) => request },
  { title: "Other server", isText: true, text: ({ server }) => server },
  { title: "its CPU µs", text: ({ baseline }) => formatSpread(baseline.cpu, 0) },
  { title: "Latchkey's CPU µs", text: ({ latchkey }) => formatSpread(latchkey?.cpu ?? none, 0) },
];

/** The comparisons on the page. */
const comparedCases: readonly CaseName[] = [
  "bare/readByKey",
  "grpcJs/readByKeyOverGrpc",
  "grpcJs/checkOverGrpc",
  "lmdb/createApplication",
  "findOne/readByKeyManyConnections",
  "connectOverHttp1/readByKeyOverConnect",
  "connectOverHttp2/readByKeyOverGrpc",
];

function createComparisons(cases: readonly BenchCase[], rounds: readonly Round[]): Comparison[] {
  return cases.flatMap(({ name, target, scenario }) => {
    const [serverName, scenarioName] = name.split("/") as [string, ScenarioName];
    const baseline = summarizeCase(rounds, name);
    if (!comparedCases.includes(name) || !baseline) {
      return [];
    }
    const latchkey = summarizeCase(
      rounds,
      `${serverName === "findOne" ? "mongo" : "embedded"}/${scenarioName}`,
    );
    return [{ request: scenario.name, server: target.label, baseline, latchkey }];
  });
}

function summarizeCase(rounds: readonly Round[], name: CaseName, items = 1): Summary | undefined {
  return rounds[0]?.has(name)
    ? summarizeSamples(rounds, (round) => perItem(round.get(name) as Sample, items))
    : undefined;
}

function createGoals(rounds: readonly Round[]): Goal[] {
  /** The ratios of two cases, one value per round. */
  function ratios(own: CaseName, other: CaseName, metric: keyof Sample): number[] {
    return rounds.map(
      (round) =>
        (round.get(own)?.[metric] ?? Number.NaN) / (round.get(other)?.[metric] ?? Number.NaN),
    );
  }

  function cpuAtMost(
    scenario: ScenarioName,
    atMost: number,
    baseline: CaseName,
    baselineName: string,
  ): Goal {
    return {
      metric: scenarios[scenario].name,
      condition: `≤ ${atMost.toFixed(1)} × ${baselineName}`,
      limit: { atMost },
      values: ratios(`embedded/${scenario}`, baseline, "cpu"),
    };
  }

  function decisionsAtLeast(scenario: ScenarioName, atLeast: number, checks: number): Goal {
    return {
      metric: scenarios[scenario].name,
      condition: `≥ ${atLeast} × the decisions per CPU second of unary checks`,
      limit: { atLeast },
      values: ratios("embedded/checkOverGrpc", `embedded/${scenario}`, "cpu").map(
        (ratio) => ratio * checks,
      ),
      digits: 1,
    };
  }

  const bare = "bare node:http";
  const grpcJs = "@grpc/grpc-js";
  const httpLmdb = "minimal node:http + lmdb";
  return [
    cpuAtMost("readByKey", 1.9, "bare/readByKey", bare),
    cpuAtMost("readByKeyOverGrpc", 1, "grpcJs/readByKeyOverGrpc", grpcJs),
    cpuAtMost("checkOverGrpc", 1, "grpcJs/checkOverGrpc", grpcJs),
    cpuAtMost("readByKeyOverConnect", 2.5, "bare/readByKeyOverConnect", bare),
    cpuAtMost("readByKeyOverGrpcWeb", 2.5, "bare/readByKeyOverConnect", bare),
    decisionsAtLeast("batchOverGrpc", 25, batchSize),
    decisionsAtLeast("batchSingleKeyOverGrpc", 25, batchSize),
    decisionsAtLeast("streamOverGrpc", 4, 1),
    cpuAtMost("createSession", 1.5, "lmdb/createSession", httpLmdb),
    cpuAtMost("authorizeSession", 1.5, "lmdb/authorizeSession", httpLmdb),
    cpuAtMost("createApplication", 1.5, "lmdb/createApplication", httpLmdb),
    {
      metric: `MongoDB: ${scenarios.readByKeyManyConnections.name}`,
      condition: "≥ 3 × the requests per second of one findOne per request",
      limit: { atLeast: 3 },
      values: ratios(
        "mongo/readByKeyManyConnections",
        "findOne/readByKeyManyConnections",
        "requestsPerSecond",
      ),
    },
  ];
}

/** Describes the conditions of the run. */
async function createNotes(
  { cores, folder, generator, mongo }: BenchContext,
  { rounds, seconds }: Plan,
): Promise<string[]> {
  return [
    `${describeMachine()}, ${new Date().toISOString().slice(0, 10)}.`,
    `${connections} connections unless stated, ${seededApplications.toLocaleString("en")} applications with 5 rules each, one server process (\`WORKERS=1\`).`,
    `Median of ${rounds} rounds of ${seconds} s (lowest–highest).`,
    cores.server === undefined
      ? "Servers and load generator shared the cores."
      : `Servers on core ${cores.server}, load generator on core ${cores.load}${mongo ? `, MongoDB on core ${cores.database}` : ""}.`,
    `Load generated by ${generator.description}.`,
    ...((await isOnTmpfs(folder))
      ? ["The embedded store was on tmpfs, so its writes look cheaper than they are."]
      : []),
    ...(mongo ? [] : ["MongoDB was not measured: no `mongod` was found."]),
  ];
}

function describeMachine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() || "unknown processor";
  return `${processors.length} × ${model} (${arch()}), ${platform()} ${release()}, Node ${process.version}`;
}

const tmpfsMagic = 0x01021994;

/** On tmpfs, syncing to disk costs nothing. */
async function isOnTmpfs(folder: string): Promise<boolean> {
  return (await statfs(folder)).type === tmpfsMagic;
}
