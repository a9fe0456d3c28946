import { spawnSync } from "node:child_process";
import { bundleScript } from "../service/child-process.js";
import { hangTimeout } from "../until.js";
import type { useLmdbFolder } from "./folder.js";

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
