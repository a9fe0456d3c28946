import type { Generator } from "./load/generator.js";
import type { Load } from "./load/load.js";
import { cpuSeconds, memoryOf } from "./processes.js";
import type { Server } from "./servers.js";

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
