import { startWorker } from "../child-processes.js";
import type { Server } from "../servers.js";
import type { Load, LoadResult, LoadTask } from "./load.js";

/** Generates load from a separate process. One failed request fails the whole load. */
export interface LoadGenerator {
  /** Sends the first request of a load alone and throws if its response is not the expected one. */
  verify(server: Server, load: Load): Promise<void>;
  run(server: Server, load: Load, seconds: number): Promise<LoadResult>;
}

export function startGenerator(cores?: string): LoadGenerator {
  const worker = startWorker<LoadTask, LoadResult>(new URL("worker.ts", import.meta.url), cores);
  const run = ({ pid, databasePid }: Server, load: Load, seconds: number) =>
    worker.run({ load, seconds, pid, databasePid });
  return {
    run,
    async verify(server, load) {
      // Streams verify every response themselves. Requests that can be sent only once must be saved for the load.
      if (load.protocol !== "stream" && !load.once) {
        const { rate: _, ...rest } = load;
        const single = { connections: 1, requests: load.requests.slice(0, 1), once: true };
        await run(server, { ...rest, ...single }, 1);
      }
    },
  };
}
