import { spawnSync } from "node:child_process";
import { bundleScript } from "./child.js";
import type { useLmdbFolder } from "./lmdb-folder.js";
import { hangTimeout } from "./until.js";

/** Other processes on the data of a test, which run a task of lmdb-child.ts. */
export function useLmdbProcesses(folder: ReturnType<typeof useLmdbFolder>) {
  const runScript = bundleScript("lmdb-child.ts");

  /** The command line of another process on the same data. */
  const child = (task: string, argument = "") => runScript(task, folder.path(), argument);

  /** Runs another process to its end, before anything else can happen in this one. */
  const run = (task: string, argument = "") =>
    spawnSync(...child(task, argument), { timeout: hangTimeout });

  return { child, run };
}
