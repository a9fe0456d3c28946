import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { type BenchContext, type Instance, reportProgress, startInstance } from "../context.js";
import type { Plan } from "../plan.js";
import type { SuiteResult } from "../report/report.js";
import { type Column, createTable, formatEstimate } from "../report/table.js";
import { type Contender, estimateCpu, runRounds } from "../rounds.js";
import { type ScenarioName, scenarios } from "../scenarios.js";

/** The supported versions of Node.js. */
const majors = [20, 22, 24, 26];

const measuredScenarios: readonly ScenarioName[] = [
  "readByKey",
  "readByKeyOverConnect",
  "readByKeyOverGrpcWeb",
  "readByKeyOverGrpc",
  "checkOverRest",
  "checkOverGrpc",
  "batchOverGrpc",
  "streamOverGrpc",
  "createSession",
  "authorizeSession",
  "createApplication",
];

/** Latchkey with its own data on one version of Node.js. */
interface Runtime {
  /** Such as `v26.10.0`. */
  readonly version: string;
  readonly instance: Instance;
}

type Case = `${string}/${ScenarioName}`;

/** Compares the cost of requests between versions of Node.js. */
export async function measureNodeVersions(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const runtimes: Runtime[] = [];
  for (const major of majors) {
    runtimes.push(await startOn(major, context));
  }
  const contenders = new Map<Case, Contender>();
  for (const scenario of measuredScenarios) {
    for (const { version, instance } of runtimes) {
      const load: Contender["load"] = (previous) => scenarios[scenario].load(instance, previous);
      contenders.set(`${version}/${scenario}`, { server: instance.server, load });
    }
  }
  const samples = await runRounds("node-versions", contenders, context, plan);
  await Promise.all(runtimes.map(({ instance }) => instance.server.stop()));
  const columns: readonly Column<ScenarioName>[] = [
    { title: "CPU µs", isText: true, text: (scenario) => scenarios[scenario].name },
    ...runtimes.map(({ version }) => ({
      title: `Node ${version}`,
      text: (scenario: ScenarioName) =>
        formatEstimate(estimateCpu(samples, `${version}/${scenario}`), 0),
    })),
  ];
  return {
    section: {
      name: "node-versions",
      table: createTable(columns, measuredScenarios),
      notes: [
        `Lowest (median) of ${plan.rounds} rounds of ${plan.seconds} s on the embedded store. The same build on each version.`,
      ],
    },
  };
}

async function startOn(
  major: number,
  { folder, cores, generator }: BenchContext,
): Promise<Runtime> {
  reportProgress(`node-versions: starting on Node ${major}`);
  const { stdout: path } = await run(installScript, [String(major)]);
  const node = path.trim();
  const { stdout: version } = await run(node, ["--version"]);
  const store = { DATA_DIR: join(folder, `node-${major}`) };
  const instance = await startInstance(
    `Node ${major}`,
    store,
    { cores: cores.server, node },
    generator,
  );
  return { version: version.trim(), instance };
}

const run = promisify(execFile);
const installScript = fileURLToPath(new URL("../../tools/node/install.sh", import.meta.url));
