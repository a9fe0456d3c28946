import { startWorker } from "../child-processes.js";
import { cpuSeconds, isInstalled, memoryOf } from "../processes.js";
import type { Server } from "../servers.js";
import { runH2load, runWrk } from "./external-tools.js";
import { type Load, type LoadResult, onceOf } from "./load.js";

/** Makes load, in processes of its own. A request that fails makes the whole load fail. */
export interface Generator {
  readonly description: string;
  /** Sends the first request of a load alone, and throws where its answer is not the expected one. */
  prove(load: Load): Promise<void>;
  run(load: Load): Promise<LoadResult>;
}

/**
 * Starts a generator: wrk for HTTP/1.1 and h2load for HTTP/2 where they are
 * installed, as they are far lighter than the server they drive, and a worker
 * process for what they cannot do: to send each request once, to keep answers,
 * to keep to a rate, to talk in streams.
 */
export function startGenerator(folder: string, cores?: string): Generator {
  const hasWrk = isInstalled("wrk");
  const hasH2load = isInstalled("h2load");
  const worker = startWorker<Load, LoadResult>(new URL("worker.ts", import.meta.url), cores);

  function run(load: Load): Promise<LoadResult> {
    if (load.once || load.keepAnswers || load.rate !== undefined) {
      return worker.ask(load);
    }
    if (load.protocol === "http1" && hasWrk) {
      return runWrk(load, folder, cores);
    }
    if ((load.protocol === "http2" || load.protocol === "grpc") && hasH2load) {
      return runH2load(load, folder, cores);
    }
    return worker.ask(load);
  }

  return {
    description: [
      `${hasWrk ? "wrk" : "autocannon for GET"} over HTTP/1.1`,
      `${hasH2load ? "h2load" : "node:http2"} for HTTP/2 and gRPC`,
      "our own driver for writes, streams and constant rates",
    ].join(", "),
    async prove(load) {
      // The answers of a stream are all looked at as they come, and a request of which each may be sent once is not to be spent.
      if (load.protocol !== "stream" && !load.once) {
        await worker.ask(onceOf(load));
      }
    },
    run,
  };
}

/** What one load on a server showed. */
export interface Sample {
  readonly requestsPerSecond: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds that the server computed for each request; not a number where that cannot be seen. */
  readonly cpu: number;
  /** Megabytes that the largest process of the server held at the end. */
  readonly memory: number;
}

interface Measured {
  readonly sample: Sample;
  readonly answers: readonly string[];
}

/** Puts a load on a server and watches what that costs the server. */
export async function measure(
  { pid }: Pick<Server, "pid">,
  generator: Generator,
  load: Load,
): Promise<Measured> {
  const before = cpuSeconds(pid);
  const { requests, seconds, p50, p99, answers } = await generator.run(load);
  const cpu = ((cpuSeconds(pid) - before) * 1_000_000) / requests;
  const memory = memoryOf(pid).whole;
  return { sample: { requestsPerSecond: requests / seconds, p50, p99, cpu, memory }, answers };
}

/** What one part of a request costs, where it has many. Latencies have no parts. */
export function perPart(sample: Sample, count: number): Sample {
  return {
    ...sample,
    requestsPerSecond: sample.requestsPerSecond * count,
    p50: Number.NaN,
    p99: Number.NaN,
    cpu: sample.cpu / count,
  };
}
