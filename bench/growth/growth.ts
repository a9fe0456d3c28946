import type { Findings } from "../findings.js";
import { measure } from "../measure.js";
import type { Plan } from "../plan.js";
import { type Memory, memoryOf } from "../processes.js";
import { startLatchkey } from "../servers.js";
import { type Stage, tell } from "../stage.js";
import { tableOf } from "../table.js";
import { goalsOfGrowth } from "./goals.js";
import { loadsOf, type Path, pageSize, paths } from "./loads.js";
import { columns, pageColumns, plotOf } from "./show.js";
import { measureStarts, type StartRound } from "./starts.js";
import { type GrownStore, growStores } from "./stores.js";

/** What was seen of a store of one size. */
export interface Grown {
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
  tell("growth: starting");
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
    tell(round === 0 ? "growth: warming up" : `growth: round ${round} of ${plan.growth.rounds}`);
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
