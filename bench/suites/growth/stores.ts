import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { stopOnExit } from "../../child-processes.js";
import { type BenchContext, reportProgress } from "../../context.js";
import type { Load } from "../../load/load.js";
import { pinCommand } from "../../processes.js";
import { get, type LoadTarget, pageSize, scenarios } from "../../scenarios.js";
import { type Keys, seed } from "../../seed.js";
import { addressOf, type StoreEnvironment, startLatchkey } from "../../servers.js";

/** An embedded store filled with applications. */
export interface SeededStore {
  readonly size: number;
  readonly keys: Keys;
  readonly environment: StoreEnvironment;
}

export async function seedStores(
  { folder, cores, generator }: BenchContext,
  sizes: readonly number[],
): Promise<readonly SeededStore[]> {
  const stores: SeededStore[] = [];
  for (const size of sizes) {
    reportProgress(`growth: creating ${size.toLocaleString("en")} applications`);
    const environment = { DATA_DIR: join(folder, `growth-${size}`) };
    const keys = await seed(environment, { cores: cores.server }, generator, size);
    stores.push({ size, keys, environment });
  }
  return stores;
}

export const operations = ["read", "firstPage", "lastPage", "update"] as const;
export type Operation = (typeof operations)[number];

/** Creates the next load of each operation. */
export async function createLoads(
  target: LoadTarget,
): Promise<Readonly<Record<Operation, () => Load>>> {
  const { keys } = target;
  const first = await fetchPagination(1, target);
  const beforeLast = await fetchPagination(first.total_items - pageSize, target);
  const pageAt = (start: string) => () => ({
    ...get(`/applications?size=${pageSize}&start=${start}`, target),
    requests: [{ key: keys.management }],
  });
  return {
    read: () => scenarios.readByKey.load(target, []),
    firstPage: pageAt(first.next),
    lastPage: pageAt(beforeLast.next),
    update: () => scenarios.updateApplication.load(target, []),
  };
}

/** Fetches a page of one application and returns the size of the list and the next cursor. */
async function fetchPagination(
  page: number,
  { server, keys }: LoadTarget,
): Promise<{ total_items: number; next: string }> {
  const url = `${addressOf(server)}/applications?size=1&page=${page}`;
  const response = await fetch(url, { headers: { "svc-api-key": keys.management } });
  if (!response.ok) {
    throw new Error(`${url} returned ${response.status} ${await response.text()}`);
  }
  const { pagination } = (await response.json()) as {
    pagination: { total_items: number; next: string };
  };
  return pagination;
}

/** Startup times in milliseconds, one per round. */
export interface Startup {
  /** `node -e 0`, from start to exit. */
  readonly node: readonly number[];
  /** From the start until ready, by the size of the store. */
  readonly ready: ReadonlyMap<number, readonly number[]>;
}

export async function measureStartup(
  stores: readonly SeededStore[],
  rounds: number,
  cores: string | undefined,
): Promise<Startup> {
  const node: number[] = [];
  const ready = new Map(stores.map(({ size }) => [size, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    node.push(await measureNodeStartup(cores));
    for (const { size, environment } of stores) {
      const server = await startLatchkey(environment, { cores });
      ready.get(size)?.push(server.startupMs);
      await server.stop();
    }
  }
  return { node, ready };
}

async function measureNodeStartup(cores: string | undefined): Promise<number> {
  const started = performance.now();
  const child = spawn(...pinCommand(cores, process.execPath, ["-e", "0"]), { stdio: "ignore" });
  stopOnExit(child);
  await once(child, "exit");
  return performance.now() - started;
}
