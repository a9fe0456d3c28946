import { startWorker } from "../child-processes.js";
import { getCpuSeconds, getLargestMemory, isInstalled } from "../processes.js";
import type { Server } from "../servers.js";
import { runH2load, runWrk } from "./external-tools.js";
import { type Load, type LoadResult, toSingleRequest } from "./load.js";

/** Generates load from separate processes. One failed request fails the whole load. */
export interface LoadGenerator {
  readonly description: string;
  /** Sends the first request of a load alone and throws if its response is not the expected one. */
  verify(load: Load): Promise<void>;
  run(load: Load): Promise<LoadResult>;
}

/**
 * Uses wrk for HTTP/1.1 and h2load for HTTP/2 if they are installed, because they
 * need far less CPU than the server. A worker process does what they cannot: send
 * each request once, keep responses, keep a constant rate, and stream.
 */
export function startGenerator(folder: string, cores?: string): LoadGenerator {
  const hasWrk = isInstalled("wrk");
  const hasH2load = isInstalled("h2load");
  const worker = startWorker<Load, LoadResult>(new URL("worker.ts", import.meta.url), cores);

  function run(load: Load): Promise<LoadResult> {
    if (load.once || load.keepResponses || load.rate !== undefined) {
      return worker.run(load);
    }
    if (load.protocol === "http1" && hasWrk) {
      return runWrk(load, folder, cores);
    }
    if ((load.protocol === "http2" || load.protocol === "grpc") && hasH2load) {
      return runH2load(load, folder, cores);
    }
    return worker.run(load);
  }

  return {
    description: [
      `${hasWrk ? "wrk" : "autocannon for GET"} over HTTP/1.1`,
      `${hasH2load ? "h2load" : "node:http2"} for HTTP/2 and gRPC`,
      "our own driver for writes, streams and constant rates",
    ].join(", "),
    async verify(load) {
      // Streams verify every response themselves. Requests that can be sent only once must be saved for the load.
      if (load.protocol !== "stream" && !load.once) {
        await worker.run(toSingleRequest(load));
      }
    },
    run,
  };
}

/** The measurements of a server under one load. */
export interface Sample {
  readonly requestsPerSecond: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds of server CPU time per request. `NaN` if it cannot be measured. */
  readonly cpu: number;
  /** Megabytes of the largest server process at the end. */
  readonly memory: number;
}

/** Runs a load and measures what it costs the server. */
export async function measure(
  { pid }: Pick<Server, "pid">,
  generator: LoadGenerator,
  load: Load,
): Promise<{ readonly sample: Sample; readonly responses: readonly string[] }> {
  const before = getCpuSeconds(pid);
  const { requests, seconds, p50, p99, responses } = await generator.run(load);
  const cpu = ((getCpuSeconds(pid) - before) * 1_000_000) / requests;
  const memory = getLargestMemory(pid).rss;
  return { sample: { requestsPerSecond: requests / seconds, p50, p99, cpu, memory }, responses };
}

/** The cost of one item of a batch request. Items have no latency. */
export function perItem(sample: Sample, count: number): Sample {
  return {
    ...sample,
    requestsPerSecond: sample.requestsPerSecond * count,
    p50: Number.NaN,
    p99: Number.NaN,
    cpu: sample.cpu / count,
  };
}
