import { startWorker, type WorkerProcess } from "../../child-processes.js";
import { reportProgress, type Stage, type Subject } from "../../context.js";
import type { Plan } from "../../plan.js";
import type { Findings } from "../../report/report.js";
import { type Column, type Spread, spreadOf, tableOf, withRange } from "../../report/table.js";
import { addressOf } from "../../servers.js";
import type { CheckWay, Spending, SpendOrder } from "./worker.js";

const names: Record<CheckWay, string> = {
  nothing: "empty async function",
  guardFromCache: "guard.check, from its cache",
  guardAsking: "guard.check, calling the service",
  clientAsking: "client.access.checkAccess, without a guard",
};
const ways = Object.keys(names) as CheckWay[];

/** How many keys are checked in turn. */
const checkedKeys = 500;

type Round = Record<CheckWay, Spending>;

/** What a check with a guard costs, beside one without. */
export async function measureGuardCost(stage: Stage, plan: Plan): Promise<Findings> {
  const { cores, embedded } = stage;
  const worker = startWorker<SpendOrder, Spending>(
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
    goals: [],
    section: {
      name: "guard",
      table: tableOf(
        columns,
        ways.map((way) => sumUp(way, rounds)),
      ),
      facts: [
        `Median of ${rounds.length} rounds (lowest–highest), each of ${local.toLocaleString("en")} local checks and ${remote.toLocaleString("en")} calls, over ${checkedKeys} keys, on the embedded store.`,
      ],
    },
  };
}

async function runRound(
  worker: WorkerProcess<SpendOrder, Spending>,
  { server, keys }: Subject,
  { checks }: Plan,
): Promise<Round> {
  const round: Partial<Round> = {};
  for (const way of ways) {
    const isRemote = way === "guardAsking" || way === "clientAsking";
    round[way] = await worker.ask({
      kind: "spend",
      way,
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
  readonly own: Spread;
  readonly service: Spread;
  /** The CPU time of a check in both processes, as a multiple of that of an answer from the cache. */
  readonly ratio: Spread;
}

const columns: readonly Column<Cost>[] = [
  { title: "Check", isText: true, text: ({ name }) => name },
  { title: "CPU µs, checking process", text: ({ own }) => withRange(own, 2) },
  { title: "CPU µs, service", text: ({ service }) => withRange(service, 2) },
  { title: "Sum × cached", text: ({ ratio }) => withRange(ratio, 2) },
];

function sumUp(way: CheckWay, rounds: readonly Round[]): Cost {
  const both = ({ own, service }: Spending) => own + service;
  return {
    name: names[way],
    own: spreadOf(rounds.map((round) => round[way].own)),
    service: spreadOf(rounds.map((round) => round[way].service)),
    ratio: spreadOf(rounds.map((round) => both(round[way]) / both(round.guardFromCache))),
  };
}
