import { statfs } from "node:fs/promises";
import { arch, cpus, platform, release } from "node:os";
import { type ServerName, startServersUnderTest } from "../../baselines/start.js";
import type { BenchContext } from "../../context.js";
import type { Measured } from "../../goals.js";
import type { Plan } from "../../plan.js";
import { combine, type Estimate, estimate, ratio } from "../../report/estimate.js";
import type { SuiteResult } from "../../report/report.js";
import { type Column, createTable, format, formatEstimate } from "../../report/table.js";
import { estimateCpu, runRounds, type Sample, type Samples } from "../../rounds.js";
import { batchSize, connections, type ScenarioName, scenarios } from "../../scenarios.js";
import { seededApplications } from "../../seed.js";
import { type BenchCase, type CaseName, selectCases } from "./cases.js";

type Cases = ReadonlyMap<CaseName, BenchCase>;

/** Measures the cost of requests and compares it with baseline servers in the same run. */
export async function measureRequests(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const cases = selectCases(await startServersUnderTest(context), plan);
  const samples = await runRounds("requests", cases, context, plan);
  return {
    section: {
      name: "requests",
      table: createTable(requestColumns, createRows(cases, samples)),
      pageTables: [
        createTable(costColumns, createCosts(samples)),
        createTable(comparisonColumns, createComparisons(cases, samples)),
      ],
      notes: await createNotes(context, plan),
    },
    measured: compareWithGoals(samples),
  };
}

function compareWithGoals(samples: Samples<CaseName>): Measured {
  const cpu = (name: CaseName) => estimateCpu(samples, name);
  const cpuRatio = (own: CaseName, other: CaseName) => ratio(cpu(own), cpu(other));
  const p99 = (name: CaseName) => estimateOf(samples, name, (sample) => sample.p99);
  const p99Ratio = (scenario: ScenarioName) =>
    ratio(p99(`embedded/${scenario}`), p99(`byHand/${scenario}`));
  const createAndAuthorize = (server: ServerName) =>
    combine(cpu(`${server}/createSession`), cpu(`${server}/authorizeSession`), (a, b) => a + b);
  return {
    read: cpuRatio("embedded/readByKey", "byHand/readByKey"),
    check: cpuRatio("embedded/checkOverRest", "byHand/checkOverRest"),
    createSession: cpuRatio("embedded/createSession", "byHand/createSession"),
    createAndAuthorize: ratio(createAndAuthorize("embedded"), createAndAuthorize("byHand")),
    createApplication: cpuRatio("embedded/createApplication", "byHand/createApplication"),
    createSessionP99: p99Ratio("createSession"),
    authorizeP99: p99Ratio("authorizeSession"),
    createApplicationP99: p99Ratio("createApplication"),
    mongoRead: cpuRatio("mongo/readByKey", "byHandOnMongo/readByKey"),
    mongoCheck: cpuRatio("mongo/checkOverRest", "byHandOnMongo/checkOverRest"),
    mongoCreateSession: cpuRatio("mongo/createSession", "byHandOnMongo/createSession"),
    mongoCreateAndAuthorize: ratio(
      createAndAuthorize("mongo"),
      createAndAuthorize("byHandOnMongo"),
    ),
    mongoCreateApplication: cpuRatio("mongo/createApplication", "byHandOnMongo/createApplication"),
    batch: ratio(perItem(cpu("embedded/batchOverGrpc"), batchSize), cpu("embedded/checkOverGrpc")),
    extAuthz: cpuRatio("embedded/extAuthz", "embedded/checkOverGrpc"),
    forwardAuth: cpuRatio("embedded/forwardAuth", "embedded/checkOverRest"),
  };
}

function estimateOf(
  samples: Samples<CaseName>,
  name: CaseName,
  select: (sample: Sample) => number,
): Estimate {
  return estimate((samples.get(name) ?? []).map(select));
}

function perItem({ lowest, median }: Estimate, count = 1): Estimate {
  return { lowest: lowest / count, median: median / count };
}

interface Row {
  readonly server: string;
  readonly request: string;
  readonly samples: readonly Sample[];
  readonly cpu: Estimate;
  /** The CPU time relative to the bare server. */
  readonly ratio: Estimate;
}

const requestColumns: readonly Column<Row>[] = [
  { title: "Server", isText: true, text: ({ server }) => server },
  { title: "Request", isText: true, text: ({ request }) => request },
  {
    title: "Requests/s",
    text: ({ samples }) => format(Math.max(...samples.map((s) => s.requestsPerSecond)), 0),
  },
  { title: "p50 ms", text: ({ samples }) => formatLatency(samples.map(({ p50 }) => p50)) },
  { title: "p99 ms", text: ({ samples }) => formatLatency(samples.map(({ p99 }) => p99)) },
  { title: "CPU µs/request", text: ({ cpu }) => formatEstimate(cpu, 0) },
  { title: "CPU × bare", text: (row) => formatEstimate(row.ratio, 2) },
];

function formatLatency(values: readonly number[]): string {
  return formatEstimate(estimate(values), 2);
}

function createRows(cases: Cases, all: Samples<CaseName>): Row[] {
  const bare = estimateCpu(all, "bare/readByKey");
  return [...cases].map(([name, { label, scenario }]) => {
    const cpu = estimateCpu(all, name);
    const samples = all.get(name) ?? [];
    return { server: label, request: scenario.name, samples, cpu, ratio: ratio(cpu, bare) };
  });
}

/** The cost of one call, or one check of a batch, on each store. */
interface Cost {
  readonly call: string;
  readonly embedded: Estimate;
  readonly mongo: Estimate;
}

const costColumns: readonly Column<Cost>[] = [
  { title: "Call", isText: true, text: ({ call }) => call },
  { title: "Embedded store: CPU µs", text: ({ embedded }) => formatEstimate(embedded, 0) },
  { title: "MongoDB: CPU µs", text: ({ mongo }) => formatEstimate(mongo, 0) },
];

/** In the order of the page: reads, checks, writes. */
const calls: readonly ScenarioName[] = [
  "readByKey",
  "readByKeyOverHttp2",
  "readByKeyOverConnect",
  "readByKeyOverGrpcWeb",
  "readByKeyOverGrpc",
  "checkOverRest",
  "checkOverGrpc",
  "extAuthz",
  "forwardAuth",
  "batchOverRest",
  "batchOverGrpc",
  "batchSingleKeyOverGrpc",
  "streamOverGrpc",
  "createSession",
  "authorizeSession",
  "createApplication",
  "updateApplication",
  "listApplications",
];

function createCosts(samples: Samples<CaseName>): Cost[] {
  return calls.map((scenario) => {
    const { name, items } = scenarios[scenario];
    return {
      call: items ? `${name}, each` : name,
      embedded: perItem(estimateCpu(samples, `embedded/${scenario}`), items),
      mongo: perItem(estimateCpu(samples, `mongo/${scenario}`), items),
    };
  });
}

/** A baseline and Latchkey with the same request. */
interface Comparison {
  readonly request: string;
  readonly server: string;
  readonly baseline: Estimate;
  readonly latchkey: Estimate;
}

const comparisonColumns: readonly Column<Comparison>[] = [
  { title: "Request", isText: true, text: ({ request }) => request },
  { title: "Other server", isText: true, text: ({ server }) => server },
  { title: "its CPU µs", text: ({ baseline }) => formatEstimate(baseline, 0) },
  { title: "Latchkey's CPU µs", text: ({ latchkey }) => formatEstimate(latchkey, 0) },
  {
    title: "Ratio",
    text: ({ latchkey, baseline }) => formatEstimate(ratio(latchkey, baseline), 2),
  },
];

/** Compares every baseline with Latchkey. */
function createComparisons(cases: Cases, samples: Samples<CaseName>): Comparison[] {
  return [...cases].flatMap(([name, { label, scenario }]) => {
    const [serverName, scenarioName] = name.split("/") as [string, ScenarioName];
    if (serverName === "embedded" || serverName === "mongo") {
      return [];
    }
    const store = serverName === "byHandOnMongo" ? "mongo" : "embedded";
    return [
      {
        request: scenario.name,
        server: label,
        baseline: estimateCpu(samples, name),
        latchkey: estimateCpu(samples, `${store}/${scenarioName}`),
      },
    ];
  });
}

/** Describes the conditions of the run. */
async function createNotes(
  { cores, folder, mongo }: BenchContext,
  { rounds, seconds }: Plan,
): Promise<string[]> {
  return [
    `${describeMachine()}, ${new Date().toISOString().slice(0, 10)}.`,
    `${connections} connections unless stated, ${seededApplications.toLocaleString("en")} applications with 5 rules each, one server process (\`WORKERS=1\`).`,
    `Lowest (median) of ${rounds} rounds of ${seconds} s.`,
    cores.server === undefined
      ? "Servers and load generator shared the cores."
      : `Servers on core ${cores.server}, load generator on core ${cores.load}${mongo ? `, MongoDB on core ${cores.database}` : ""}.`,
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
