import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach } from "@jest/globals";
import { type LmdbStoreOptions, openLmdbStore } from "../../../src/store/lmdb/store.js";
import { bundleScript } from "../service/child-process.js";
import { type OperableStore, withOperations } from "../store/operations.js";
import { hangTimeout } from "../until.js";

/** Gives each test a temporary folder. Afterwards closes its stores and removes the folder. */
export function useLmdbFolder() {
  let path = "";
  let opened: OperableStore[] = [];

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

    /** Opens a store that by default does not sweep and has a long write timeout. */
    async open(options: Partial<LmdbStoreOptions> = {}): Promise<OperableStore> {
      const defaults = { sweepInterval: 2 ** 30, writeTimeout: 60_000 };
      const store = withOperations(await openLmdbStore({ path, ...defaults, ...options }));
      opened.push(store);
      return store;
    },
  };
}

/** Runs tasks of child.ts in other processes, on the data of the current test. */
export function useLmdbProcesses(folder: ReturnType<typeof useLmdbFolder>) {
  const runScript = bundleScript("test/support/lmdb/child.ts");

  /** Returns the command that runs a task. */
  const child = (task: string, argument = "") => runScript(task, folder.path(), argument);

  /** Runs a task synchronously. */
  const run = (task: string, argument = "") =>
    spawnSync(...child(task, argument), { timeout: hangTimeout });

  return { child, run };
}
