import { isInstalled } from "../cores.js";
import { startWorker } from "../worker-process.js";
import type { Load, LoadResult } from "./load.js";
import { runWrk } from "./wrk.js";

/** Makes load, in processes of its own. A request that fails makes the whole load fail. */
export interface Generator {
  readonly description: string;
  run(load: Load): Promise<LoadResult>;
}

/**
 * Starts a generator: wrk for reads over REST where it is installed, as it is
 * far lighter than the server it drives, and a worker process for all else.
 */
export function startGenerator(folder: string, cores?: string): Generator {
  const hasWrk = isInstalled("wrk");
  const worker = startWorker<Load, LoadResult>(new URL("worker.ts", import.meta.url), cores);
  return {
    description: `${hasWrk ? "wrk" : "autocannon"} for GET, @grpc/grpc-js for gRPC, node:http for POST`,
    run: (load) =>
      hasWrk && load.protocol === "rest" && load.verb === "GET"
        ? runWrk(load, folder, cores)
        : worker.ask(load),
  };
}
