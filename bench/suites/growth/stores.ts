import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { endWithBench } from "../../child-processes.js";
import { reportProgress } from "../../context.js";
import type { Load } from "../../load/load.js";
import { pinned } from "../../processes.js";
import { get, readByKey, type Target } from "../../scenarios.js";
import { type Keys, privateApplication, seed } from "../../seed.js";
import { type StoreEnvironment, startLatchkey } from "../../servers.js";

/** An embedded store with so many applications. */
export interface GrownStore {
  readonly size: number;
  readonly keys: Keys;
  readonly environment: StoreEnvironment;
  readonly folder: string;
  /** Seconds that it took to fill it. */
  readonly seconds: number;
}

/** Fills a store of each size. */
export async function growStores(
  folder: string,
  sizes: readonly number[],
): Promise<readonly GrownStore[]> {
  const stores: GrownStore[] = [];
  for (const size of sizes) {
    reportProgress(`growth: making ${size.toLocaleString("en")} applications`);
    const own = join(folder, `growth-${size}`);
    const environment = { DATA_DIR: own };
    const started = performance.now();
    const keys = await seed(environment, size);
    const seconds = (performance.now() - started) / 1000;
    stores.push({ size, keys, environment, folder: own, seconds });
  }
  return stores;
}

/** What is asked of a store of any size. */
export const paths = ["read", "firstPage", "lastPage", "update"] as const;
export type Path = (typeof paths)[number];

export const pageSize = 20;

const { name, permissions, rules } = JSON.parse(privateApplication);
const update = JSON.stringify({ name, permissions, rules });

export async function loadsOf(target: Target): Promise<Record<Path, Load>> {
  const { keys } = target;
  const first = await pageOfOne(1, target);
  const beforeLast = await pageOfOne(first.total_items - pageSize, target);
  const pageAt = (start: string) => ({
    ...get(`/applications?size=${pageSize}&start=${start}`, target),
    requests: [{ key: keys.management }],
  });
  return {
    read: readByKey.load(target, []),
    firstPage: pageAt(first.next),
    lastPage: pageAt(beforeLast.next),
    update: {
      ...get("/applications", target),
      verb: "PUT",
      requests: keys.private.map(({ id }) => ({
        key: keys.management,
        path: `/applications/${id}`,
        body: update,
      })),
    },
  };
}

/** Where one application stands in the list, and the cursor of what follows it. */
async function pageOfOne(
  page: number,
  { port, keys }: Target,
): Promise<{ total_items: number; next: string }> {
  const url = `http://127.0.0.1:${port}/applications?size=1&page=${page}`;
  const response = await fetch(url, { headers: { "svc-api-key": keys.management } });
  if (!response.ok) {
    throw new Error(`${url} answered ${response.status} ${await response.text()}`);
  }
  const { pagination } = (await response.json()) as {
    pagination: { total_items: number; next: string };
  };
  return pagination;
}

/** Milliseconds of one round. */
export interface StartRound {
  /** `node -e 0`, from its start to its end. */
  readonly node: number;
  /** From the start to the answer that it is ready, by the size of the store. */
  readonly ready: ReadonlyMap<number, number>;
}

export async function measureStarts(
  stores: readonly GrownStore[],
  rounds: number,
  cores: string | undefined,
): Promise<StartRound[]> {
  const measured: StartRound[] = [];
  // The first round only brings files into memory.
  for (let round = 0; round <= rounds; round++) {
    const ready = new Map<number, number>();
    const node = await timeOfNode(cores);
    for (const { size, environment } of stores) {
      const server = await startLatchkey(environment, { cores });
      ready.set(size, server.readyAfter);
      await server.stop();
    }
    measured.push({ node, ready });
  }
  return measured.slice(1);
}

async function timeOfNode(cores: string | undefined): Promise<number> {
  const started = performance.now();
  const child = spawn(...pinned(cores, process.execPath, ["-e", "0"]), { stdio: "ignore" });
  endWithBench(child);
  await once(child, "exit");
  return performance.now() - started;
}
