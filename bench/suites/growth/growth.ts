import { type BenchContext, reportProgress } from "../../context.js";
import { measure } from "../../load/generator.js";
import type { Plan } from "../../plan.js";
import { getLargestMemory, type Memory } from "../../processes.js";
import { drawPlot, type Series } from "../../report/plot.js";
import type { Goal, SuiteResult } from "../../report/report.js";
import {
  type Column,
  createTable,
  format,
  formatSpread,
  type Spread,
  spreadOf,
} from "../../report/table.js";
import { startLatchkey } from "../../servers.js";
import {
  createLoads,
  measureStartup,
  type Operation,
  operations,
  pageSize,
  type SeededStore,
  type StartupRound,
  seedStores,
} from "./stores.js";

/** The measurements of one store. */
interface StoreResult {
  readonly store: SeededStore;
  /** CPU µs per request, one value per round. */
  readonly cpu: Readonly<Record<Operation, number[]>>;
  readonly startups: readonly StartupRound[];
  /** Measured after all loads. */
  readonly memory: Memory;
}

/** Measures requests, startup and memory with a growing number of applications. */
export async function measureGrowth(context: BenchContext, plan: Plan): Promise<SuiteResult> {
  const { cores, folder } = context;
  const stores = await seedStores(folder, plan.growth.sizes);
  reportProgress("growth: measuring startup");
  const startups = await measureStartup(stores, plan.growth.starts, cores.server);
  const results = await measureLoads(context, plan, stores, startups);
  return {
    section: {
      name: "growth",
      table: createTable(columns, results),
      pageTables: [createTable(pageColumns, results)],
      picture: {
        file: "growth.svg",
        altText: "CPU time of a request against the number of applications",
        svg: createPlot(results),
      },
      notes: [
        `Median of ${plan.growth.rounds} rounds of ${plan.seconds} s (lowest–highest).`,
        `Reads and updates pick applications at random. Pages hold ${pageSize} applications and are read by cursor.`,
      ],
    },
    goals: createGoals(results),
  };
}

async function measureLoads(
  { cores, generator }: BenchContext,
  plan: Plan,
  stores: readonly SeededStore[],
  startups: readonly StartupRound[],
): Promise<StoreResult[]> {
  const runs = await Promise.all(
    stores.map(async (store) => {
      const cpu: Record<Operation, number[]> = {
        read: [],
        firstPage: [],
        lastPage: [],
        update: [],
      };
      const server = await startLatchkey(store.environment, { cores: cores.server });
      const { port } = server;
      const loads = await createLoads({ port, keys: store.keys, seconds: plan.seconds });
      return { store, cpu, server, loads };
    }),
  );
  // The first round is the warmup.
  for (let round = 0; round <= plan.growth.rounds; round++) {
    reportProgress(
      round === 0 ? "growth: warming up" : `growth: round ${round} of ${plan.growth.rounds}`,
    );
    for (const operation of operations) {
      for (const { server, loads, cpu } of runs) {
        if (round === 0) {
          await generator.verify(loads[operation]);
        }
        const { sample } = await measure(server, generator, loads[operation]);
        if (round > 0) {
          cpu[operation].push(sample.cpu);
        }
      }
    }
  }
  const results = runs.map(({ store, cpu, server }) => ({
    store,
    cpu,
    startups,
    memory: getLargestMemory(server.pid, store.folder),
  }));
  await Promise.all(runs.map(({ server }) => server.stop()));
  return results;
}

const maxGrowth = 1.15;
const maxMegabytes = 150;
const nodeStartupFactor = 1.5;
const maxExtraStartupMs = 400;

/** The goals compare the smallest and the largest store. */
function createGoals(results: readonly StoreResult[]): Goal[] {
  const smallest = results[0] as StoreResult;
  const largest = results.at(-1) as StoreResult;
  const [few, many] = [formatSize(smallest), formatSize(largest)];

  const growthGoal = (operation: Operation, name: string): Goal => ({
    metric: `Growth: ${name}`,
    condition: `at ${many} ≤ ${maxGrowth} × at ${few}`,
    limit: { atMost: maxGrowth },
    values: ratios(largest.cpu[operation], smallest.cpu[operation]),
  });

  return [
    {
      metric: "Memory of a worker",
      condition: `≤ ${maxMegabytes} MB at ${many}, without the mapped data`,
      limit: { atMost: maxMegabytes },
      values: [largest.memory.rssWithoutData],
      digits: 0,
    },
    ...[smallest, largest].map(startupGoal),
    growthGoal("read", "CPU of GET by key"),
    {
      metric: "Growth: pages by cursor",
      condition: `the last ≤ ${maxGrowth} × the first, at ${many}`,
      limit: { atMost: maxGrowth },
      values: ratios(largest.cpu.lastPage, largest.cpu.firstPage),
    },
    growthGoal("update", "CPU of an update"),
  ];
}

function startupGoal({ store, startups }: StoreResult): Goal {
  return {
    metric: `Start to ready with ${store.size.toLocaleString("en")} applications`,
    condition: `≤ ${maxExtraStartupMs} ms beyond ${nodeStartupFactor} × node -e 0`,
    limit: { atMost: maxExtraStartupMs },
    values: startups.map(
      ({ node, ready }) => (ready.get(store.size) ?? Number.NaN) - nodeStartupFactor * node,
    ),
    digits: 0,
  };
}

function ratios(values: readonly number[], others: readonly number[]): number[] {
  return values.map((value, index) => value / (others[index] as number));
}

function formatSize({ store }: StoreResult): string {
  return `${store.size.toLocaleString("en")} applications`;
}

const nodeTitle = "node -e 0 ms";

const columns: readonly Column<StoreResult>[] = [
  { title: "Applications", text: ({ store }) => format(store.size, 0) },
  { title: "CPU µs: GET by key", text: formatCpu("read") },
  { title: "first page", text: formatCpu("firstPage") },
  { title: "last page", text: formatCpu("lastPage") },
  { title: "update", text: formatCpu("update") },
  { title: "Start to ready ms", text: (result) => formatSpread(getStartup(result), 0) },
  {
    title: nodeTitle,
    text: ({ startups }) => formatSpread(spreadOf(startups.map(({ node }) => node)), 0),
  },
  { title: "RSS MB", text: ({ memory }) => format(memory.rss, 0) },
  { title: "RSS without data file", text: ({ memory }) => format(memory.rssWithoutData, 0) },
];

/** The page leaves out the startup time of Node.js itself. */
const pageColumns = columns.filter(({ title }) => title !== nodeTitle);

function formatCpu(operation: Operation): (result: StoreResult) => string {
  return ({ cpu }) => formatSpread(spreadOf(cpu[operation]), 0);
}

function getStartup({ store, startups }: StoreResult): Spread {
  return spreadOf(startups.map(({ ready }) => ready.get(store.size) ?? Number.NaN));
}

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
        y: spreadOf(cpu[operation]).median,
      })),
    })),
  });
}
