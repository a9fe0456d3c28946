import { type BenchContext, reportProgress } from "../../context.js";
import type { Measured } from "../../goals.js";
import type { Plan } from "../../plan.js";
import { getLargestMemory, type Memory } from "../../processes.js";
import { combine, type Estimate, estimate, ratio } from "../../report/estimate.js";
import { drawPlot, type Series } from "../../report/plot.js";
import type { SuiteResult } from "../../report/report.js";
import { type Column, createTable, format, formatEstimate } from "../../report/table.js";
import { type Contender, estimateCpu, runRounds } from "../../rounds.js";
import { pageSize } from "../../scenarios.js";
import { startLatchkey } from "../../servers.js";
import {
  createLoads,
  measureStartup,
  type Operation,
  operations,
  type SeededStore,
  type Startup,
  seedStores,
} from "./stores.js";

/** The measurements of one store. */
interface StoreResult {
  readonly store: SeededStore;
  /** CPU µs per request. */
  readonly cpu: Readonly<Record<Operation, Estimate>>;
  /** Milliseconds from start to ready. */
  readonly startup: Estimate;
  /** Measured after all loads. */
  readonly memory: Memory;
}

/** Measures requests, startup and memory with a growing number of applications. */
export async function measureGrowth(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const stores = await seedStores(context, plan.growthSizes);
  reportProgress("growth: measuring startup");
  const startup = await measureStartup(stores, plan.rounds, context.cores.server);
  const results = await measureLoads(context, plan, stores, startup);
  const node = estimate(startup.node);
  return {
    section: {
      name: "growth",
      table: createTable(columns, results),
      picture: {
        file: "growth.svg",
        altText: "CPU time of a request against the number of applications",
        svg: createPlot(results),
      },
      notes: [
        `Lowest (median) of ${plan.rounds} rounds of ${plan.seconds} s, and of ${plan.rounds} starts. \`node -e 0\` took ${formatEstimate(node, 0)} ms.`,
        `Reads and updates pick applications at random. Pages hold ${pageSize} applications and are read by cursor.`,
      ],
    },
    measured: compareWithGoals(results, node),
  };
}

async function measureLoads(
  context: BenchContext,
  plan: Plan,
  stores: readonly SeededStore[],
  { ready }: Startup,
): Promise<StoreResult[]> {
  const contenders = new Map<`${Operation}/${number}`, Contender>();
  const runs = await Promise.all(
    stores.map(async (store) => {
      const { environment, keys } = store;
      const server = await startLatchkey(environment, { cores: context.cores.server });
      return { store, server, loads: await createLoads({ server, keys }) };
    }),
  );
  for (const operation of operations) {
    for (const { store, server, loads } of runs) {
      contenders.set(`${operation}/${store.size}`, { server, load: loads[operation] });
    }
  }
  const samples = await runRounds("growth", contenders, context, plan);
  const results = runs.map(({ store, server }) => {
    const cpu = (operation: Operation) => estimateCpu(samples, `${operation}/${store.size}`);
    return {
      store,
      cpu: {
        read: cpu("read"),
        firstPage: cpu("firstPage"),
        lastPage: cpu("lastPage"),
        update: cpu("update"),
      },
      startup: estimate(ready.get(store.size) ?? []),
      memory: getLargestMemory(server.pid),
    };
  });
  await Promise.all(runs.map(({ server }) => server.stop()));
  return results;
}

const nodeStartupFactor = 1.5;

/** Compares the smallest and the largest store. */
function compareWithGoals(results: readonly StoreResult[], node: Estimate): Measured {
  const smallest = results[0] as StoreResult;
  const largest = results.at(-1) as StoreResult;
  const start = ({ startup }: StoreResult) =>
    combine(startup, node, (ready, bare) => ready - nodeStartupFactor * bare);
  return {
    startup: start(largest),
    growthOfRead: ratio(largest.cpu.read, smallest.cpu.read),
    growthOfUpdate: ratio(largest.cpu.update, smallest.cpu.update),
    growthOfPages: ratio(largest.cpu.lastPage, largest.cpu.firstPage),
  };
}

const columns: readonly Column<StoreResult>[] = [
  { title: "Applications", text: ({ store }) => format(store.size, 0) },
  { title: "CPU µs: GET by key", text: ({ cpu }) => formatEstimate(cpu.read, 0) },
  { title: "first page", text: ({ cpu }) => formatEstimate(cpu.firstPage, 0) },
  { title: "last page", text: ({ cpu }) => formatEstimate(cpu.lastPage, 0) },
  { title: "update", text: ({ cpu }) => formatEstimate(cpu.update, 0) },
  { title: "Start to ready ms", text: ({ startup }) => formatEstimate(startup, 0) },
  { title: "RSS MB", text: ({ memory }) => format(memory.rss, 0) },
  { title: "without mapped pages", text: ({ memory }) => format(memory.unmapped, 0) },
];

const lines: readonly { operation: Operation; name: string; labels: Series["labels"] }[] = [
  { operation: "lastPage", name: "last page of the list", labels: "above" },
  { operation: "update", name: "update of one", labels: "above" },
  { operation: "read", name: "GET by key", labels: "below" },
];

function createPlot(results: readonly StoreResult[]): string {
  return drawPlot({
    title: "CPU time of a request against the number of applications",
    x: { label: "applications", isLogarithmic: true },
    y: { label: "CPU µs per request" },
    series: lines.map(({ operation, name, labels }) => ({
      name,
      labels,
      points: results.map(({ store, cpu }) => ({
        x: store.size,
        y: cpu[operation].lowest,
      })),
    })),
  });
}
