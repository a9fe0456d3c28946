import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { stopOnExit } from "../../child-processes.js";
import { reportProgress } from "../../context.js";
import type { Load } from "../../load/load.js";
import { pinCommand } from "../../processes.js";
import { get, type LoadTarget, readByKey } from "../../scenarios.js";
import { type Keys, privateApplication, seed } from "../../seed.js";
import { type StoreEnvironment, startLatchkey } from "../../servers.js";

/** An embedded store filled with applications. */
export interface SeededStore {
  readonly size: number;
  readonly keys: Keys;
  readonly environment: StoreEnvironment;
  readonly folder: string;
}

export async function seedStores(
  folder: string,
  sizes: readonly number[],
): Promise<readonly SeededStore[]> {
  const stores: SeededStore[] = [];
  for (const size of sizes) {
    reportProgress(`growth: creating ${size.toLocaleString("en")} applications`);
    const storeFolder = join(folder, `growth-${size}`);
    const environment = { DATA_DIR: storeFolder };
    const keys = await seed(environment, size);
    stores.push({ size, keys, environment, folder: storeFolder });
  }
  return stores;
}

export const operations = ["read", "firstPage", "lastPage", "update"] as const;
export type Operation = (typeof operations)[number];

export const pageSize = 20;

const { name, permissions, rules } = JSON.parse(privateApplication);
const update = JSON.stringify({ name, permissions, rules });

export async function createLoads(target: LoadTarget): Promise<Record<Operation, Load>> {
  const { keys } = target;
  const first = await fetchPagination(1, target);
  const beforeLast = await fetchPagination(first.total_items - pageSize, target);
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

/** Fetches a page of one application and returns the size of the list and the next cursor. */
async function fetchPagination(
  page: number,
  { port, keys }: LoadTarget,
): Promise<{ total_items: number; next: string }> {
  const url = `http://127.0.0.1:${port}/applications?size=1&page=${page}`;
  const response = await fetch(url, { headers: { "svc-api-key": keys.management } });
  if (!response.ok) {
    throw new Error(`${url} returned ${response.status} ${await response.text()}`);
  }
  const { pagination } = (await response.json()) as {
    pagination: { total_items: number; next: string };
  };
  return pagination;
}

/** Startup times of one round in milliseconds. */
export interface StartupRound {
  /** `node -e 0`, from start to exit. */
  readonly node: number;
  /** From the start until ready, by the size of the store. */
  readonly ready: ReadonlyMap<number, number>;
}

export async function measureStartup(
  stores: readonly SeededStore[],
  rounds: number,
  cores: string | undefined,
): Promise<StartupRound[]> {
  const results: StartupRound[] = [];
  // The first round only warms the page cache.
  for (let round = 0; round <= rounds; round++) {
    const ready = new Map<number, number>();
    const node = await measureNodeStartup(cores);
    for (const { size, environment } of stores) {
      const server = await startLatchkey(environment, { cores });
      ready.set(size, server.startupMs);
      await server.stop();
    }
    results.push({ node, ready });
  }
  return results.slice(1);
}

async function measureNodeStartup(cores: string | undefined): Promise<number> {
  const started = performance.now();
  const child = spawn(...pinCommand(cores, process.execPath, ["-e", "0"]), { stdio: "ignore" });
  stopOnExit(child);
  await once(child, "exit");
  return performance.now() - started;
}
