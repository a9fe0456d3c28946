import { startWorker, type Worker } from "../../child-processes.js";
import { type BenchContext, type Instance, reportProgress } from "../../context.js";
import type { Plan } from "../../plan.js";
import { combine, type Estimate, estimate, ratio } from "../../report/estimate.js";
import type { SuiteResult } from "../../report/report.js";
import { type Column, createTable, formatEstimate } from "../../report/table.js";
import { addressOf } from "../../servers.js";
import type { CheckCost, CheckMethod, CostTask } from "./worker.js";

const names: Record<CheckMethod, string> = {
  nothing: "empty async function",
  guardCached: "guard.check, from its cache",
  guardRemote: "guard.check, calling the service",
  clientRemote: "client.access.checkAccess, without a guard",
};
const methods = Object.keys(names) as CheckMethod[];

const checkedKeys = 500;

type Round = Record<CheckMethod, CheckCost>;

/** Compares the CPU time of checks with and without a guard. */
export async function measureGuardCost(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { cores, embedded } = context;
  const worker = startWorker<CostTask, CheckCost>(
    new URL("worker.ts", import.meta.url),
    cores.load,
  );
  reportProgress("guard: warming up");
  await runRound(worker, embedded, plan);
  const rounds: Round[] = [];
  while (rounds.length < plan.rounds) {
    reportProgress(`guard: round ${rounds.length + 1} of ${plan.rounds}`);
    rounds.push(await runRound(worker, embedded, plan));
  }
  const { local, remote } = plan.checks;
  return {
    section: {
      name: "guard",
      table: createTable(
        createColumns(summarize("guardCached", rounds)),
        methods.map((method) => summarize(method, rounds)),
      ),
      notes: [
        `Lowest (median) of ${rounds.length} rounds, each of ${local.toLocaleString("en")} local checks and ${remote.toLocaleString("en")} calls, over ${checkedKeys} keys, on the embedded store.`,
      ],
    },
  };
}

async function runRound(
  worker: Worker<CostTask, CheckCost>,
  { server, keys }: Instance,
  { checks }: Plan,
): Promise<Round> {
  const round: Partial<Round> = {};
  for (const method of methods) {
    const isRemote = method === "guardRemote" || method === "clientRemote";
    round[method] = await worker.run({
      kind: "cost",
      method,
      url: addressOf(server),
      checkingKey: keys.checking,
      keys: keys.private.slice(0, checkedKeys).map(({ key }) => key),
      checks: isRemote ? checks.remote : checks.local,
      servicePid: server.pid,
    });
  }
  return round as Round;
}

interface Cost {
  readonly name: string;
  readonly own: Estimate;
  readonly service: Estimate;
}

const sum = ({ own, service }: Cost) => combine(own, service, (a, b) => a + b);

function createColumns(cached: Cost): readonly Column<Cost>[] {
  return [
    { title: "Check", isText: true, text: ({ name }) => name },
    { title: "CPU µs, checking process", text: ({ own }) => formatEstimate(own, 2) },
    { title: "CPU µs, service", text: ({ service }) => formatEstimate(service, 2) },
    { title: "Total ÷ cached", text: (cost) => formatEstimate(ratio(sum(cost), sum(cached)), 2) },
  ];
}

function summarize(method: CheckMethod, rounds: readonly Round[]): Cost {
  return {
    name: names[method],
    own: estimate(rounds.map((round) => round[method].own)),
    service: estimate(rounds.map((round) => round[method].service)),
  };
}
