import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { endWithBench } from "../cleanup.js";
import { isInstalled, pinned } from "../cores.js";
import type { Load, LoadResult } from "./load.js";
import { runWrk } from "./wrk.js";

/** Makes load, in processes of its own. A request that fails makes the whole load fail. */
export interface Generator {
  readonly description: string;
  run(load: Load): Promise<LoadResult>;
}

/** What the worker process answers. */
export type WorkerReply = { readonly result: LoadResult } | { readonly error: string };

/**
 * Starts a generator: wrk for reads over REST where it is installed, as it is
 * far lighter than the server it drives, and a worker process for all else.
 */
export function startGenerator(folder: string, cores?: string): Generator {
  const hasWrk = isInstalled("wrk");
  const worker = startWorker(cores);
  return {
    description: `${hasWrk ? "wrk" : "autocannon"} for reads over REST, @grpc/grpc-js for gRPC, node:http for writes`,
    run: (load) =>
      hasWrk && load.protocol === "rest" && load.verb === "GET"
        ? runWrk(load, folder, cores)
        : askWorker(worker, load),
  };
}

function startWorker(cores: string | undefined): ChildProcess {
  const file = fileURLToPath(new URL("worker.ts", import.meta.url));
  const command = pinned(cores, process.execPath, ["--import", "tsx", file]);
  const worker = spawn(...command, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  endWithBench(worker);
  return worker;
}

async function askWorker(worker: ChildProcess, load: Load): Promise<LoadResult> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    worker.send(load);
    const [reply] = await Promise.race([
      once(worker, "message", { signal }),
      once(worker, "exit", { signal }).then(() => {
        throw new Error("the process that makes load has ended");
      }),
    ]);
    const answer = reply as WorkerReply;
    if ("error" in answer) {
      throw new Error(answer.error);
    }
    return answer.result;
  } finally {
    settled.abort();
  }
}
