import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "@jest/globals";
import { type LmdbStoreOptions, openLmdbStore } from "../../../src/store/lmdb/store.js";
import type { Store } from "../../../src/store/port/store.js";
import { bundleScript } from "../service/child-process.js";
import { hangTimeout } from "../until.js";

/** Other processes on the data of a test, which run a task of child.ts. */
export function useLmdbProcesses(folder: ReturnType<typeof useLmdbFolder>) {
  const runScript = bundleScript("test/support/lmdb/child.ts");

  /** The command line of another process on the same data. */
  const child = (task: string, argument = "") => runScript(task, folder.path(), argument);

  /** Runs another process to its end, before anything else can happen in this one. */
  const run = (task: string, argument = "") =>
    spawnSync(...child(task, argument), { timeout: hangTimeout });

  return { child, run };
}

/** Gives each test a folder of its own, and closes and removes what it leaves there. */
export function useLmdbFolder() {
  let path = "";
  let opened: Store[] = [];

  beforeEach(async () => {
    path = await mkdtemp(join(tmpdir(), "latchkey-"));
    opened = [];
  });

  afterEach(async () => {
    await Promise.allSettled(opened.map((store) => store.close()));
    await rm(path, { recursive: true });
  });

  return {
    path: () => path,

    /** Opens a store there: it does not sweep unless told to, and is patient on a slow machine. */
    async open(options: Partial<LmdbStoreOptions> = {}): Promise<Store> {
      const calm = { sweepInterval: 2 ** 30, writeTimeout: 60_000 };
      const store = await openLmdbStore({ path, ...calm, ...options });
      opened.push(store);
      return store;
    },
  };
}
