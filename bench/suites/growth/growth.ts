import { reportProgress, type Stage } from "../../context.js";
import { measure } from "../../load/generator.js";
import type { Plan } from "../../plan.js";
import { type Memory, memoryOf } from "../../processes.js";
import { drawPlot, type Series } from "../../report/plot.js";
import type { Findings, Goal } from "../../report/report.js";
import {
  type Column,
  format,
  type Spread,
  spreadOf,
  tableOf,
  withRange,
} from "../../report/table.js";
import { startLatchkey } from "../../servers.js";
import {
  type GrownStore,
  growStores,
  loadsOf,
  measureStarts,
  type Path,
  pageSize,
  paths,
  type StartRound,
} from "./stores.js";

/** What was seen of a store of one size. */
interface Grown {
  readonly store: GrownStore;
  /** CPU µs of a request in each round. */
  readonly cpu: Readonly<Record<Path, number[]>>;
  readonly starts: readonly StartRound[];
  /** After all loads. */
  readonly memory: Memory;
}

/** What a request, a start and a process cost as the applications become more. */
export async function measureGrowth(stage: Stage, plan: Plan): Promise<Findings> {
  const { cores, folder } = stage;
  const stores = await growStores(folder, plan.growth.sizes);
  reportProgress("growth: starting");
  const starts = await measureStarts(stores, plan.growth.starts, cores.server);
  const grown = await measureLoads(stage, plan, stores, starts);
  return {
    section: {
      name: "growth",
      table: tableOf(columns, grown),
      pageTables: [tableOf(pageColumns, grown)],
      picture: {
        file: "growth.svg",
        altText: "CPU time of a request against the number of applications",
        svg: plotOf(grown),
      },
      facts: [
        `Median of ${plan.growth.rounds} rounds of ${plan.seconds} s (lowest–highest).`,
        `Reads and updates pick applications at random. Pages hold ${pageSize} applications and are read by cursor.`,
      ],
    },
    goals: goalsOfGrowth(grown),
  };
}

async function measureLoads(
  { cores, generator }: Stage,
  plan: Plan,
  stores: readonly GrownStore[],
  starts: readonly StartRound[],
): Promise<Grown[]> {
  const runs = await Promise.all(
    stores.map(async (store) => {
      const cpu: Record<Path, number[]> = { read: [], firstPage: [], lastPage: [], update: [] };
      const server = await startLatchkey(store.environment, { cores: cores.server });
      const { port } = server;
      const loads = await loadsOf({ port, keys: store.keys, seconds: plan.seconds });
      return { store, cpu, server, loads };
    }),
  );
  // The first round is only to warm up.
  for (let round = 0; round <= plan.growth.rounds; round++) {
    reportProgress(
      round === 0 ? "growth: warming up" : `growth: round ${round} of ${plan.growth.rounds}`,
    );
    for (const path of paths) {
      for (const { server, loads, cpu } of runs) {
        if (round === 0) {
          await generator.prove(loads[path]);
        }
        const { sample } = await measure(server, generator, loads[path]);
        if (round > 0) {
          cpu[path].push(sample.cpu);
        }
      }
    }
  }
  const grown = runs.map(({ store, cpu, server }) => ({
    store,
    cpu,
    starts,
    memory: memoryOf(server.pid, store.folder),
  }));
  await Promise.all(runs.map(({ server }) => server.stop()));
  return grown;
}

const mostGrowth = 1.15;
const mostMegabytes = 150;
const startFactor = 1.5;
const startAllowance = 400;

/** What the smallest and the largest store have to say about the goals. */
function goalsOfGrowth(all: readonly Grown[]): Goal[] {
  const least = all[0] as Grown;
  const greatest = all.at(-1) as Grown;
  const [few, many] = [inWords(least), inWords(greatest)];

  const growthOf = (path: Path, what: string): Goal => ({
    path: `Growth: ${what}`,
    promise: `at ${many} ≤ ${mostGrowth} × at ${few}`,
    limit: { atMost: mostGrowth },
    figures: ratios(greatest.cpu[path], least.cpu[path]),
  });

  return [
    {
      path: "Memory of a worker",
      promise: `≤ ${mostMegabytes} MB at ${many}, without the mapped data`,
      limit: { atMost: mostMegabytes },
      figures: [greatest.memory.own],
      digits: 0,
    },
    ...[least, greatest].map(startGoal),
    growthOf("read", "CPU of GET by key"),
    {
      path: "Growth: pages by cursor",
      promise: `the last ≤ ${mostGrowth} × the first, at ${many}`,
      limit: { atMost: mostGrowth },
      figures: ratios(greatest.cpu.lastPage, greatest.cpu.firstPage),
    },
    growthOf("update", "CPU of an update"),
  ];
}

function startGoal({ store, starts }: Grown): Goal {
  return {
    path: `Start to ready with ${store.size.toLocaleString("en")} applications`,
    promise: `≤ ${startAllowance} ms beyond ${startFactor} × node -e 0`,
    limit: { atMost: startAllowance },
    figures: starts.map(
      ({ node, ready }) => (ready.get(store.size) ?? Number.NaN) - startFactor * node,
    ),
    digits: 0,
  };
}

function ratios(own: readonly number[], others: readonly number[]): number[] {
  return own.map((figure, at) => figure / (others[at] as number));
}

function inWords({ store }: Grown): string {
  return `${store.size.toLocaleString("en")} applications`;
}

const nodeTitle = "node -e 0 ms";

const columns: readonly Column<Grown>[] = [
  { title: "Applications", text: ({ store }) => format(store.size, 0) },
  { title: "CPU µs: GET by key", text: withSpread("read") },
  { title: "first page", text: withSpread("firstPage") },
  { title: "last page", text: withSpread("lastPage") },
  { title: "update", text: withSpread("update") },
  { title: "Start to ready ms", text: (grown) => withRange(readyOf(grown), 0) },
  {
    title: nodeTitle,
    text: ({ starts }) => withRange(spreadOf(starts.map(({ node }) => node)), 0),
  },
  { title: "RSS MB", text: ({ memory }) => format(memory.whole, 0) },
  { title: "RSS without data file", text: ({ memory }) => format(memory.own, 0) },
];

/** The table of the page leaves out the time that Node.js itself takes to start. */
const pageColumns = columns.filter(({ title }) => title !== nodeTitle);

function withSpread(path: Path): (grown: Grown) => string {
  return ({ cpu }) => withRange(spreadOf(cpu[path]), 0);
}

function readyOf({ store, starts }: Grown): Spread {
  return spreadOf(starts.map(({ ready }) => ready.get(store.size) ?? Number.NaN));
}

const lines: readonly { path: Path; name: string; values: Series["values"] }[] = [
  { path: "lastPage", name: "last page of the list", values: "above" },
  { path: "update", name: "update of one", values: "above" },
  { path: "read", name: "GET by key", values: "below" },
];

function plotOf(all: readonly Grown[]): string {
  return drawPlot({
    title: "CPU time of a request against the number of applications",
    x: { label: "applications", isLogarithmic: true },
    y: { label: "CPU µs per request" },
    series: lines.map(({ path, name, values }) => ({
      name,
      values,
      points: all.map(({ store, cpu }) => ({ x: store.size, y: spreadOf(cpu[path]).median })),
    })),
  });
}
