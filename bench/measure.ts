import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Generator } from "./load/generator.js";
import type { Load } from "./load/load.js";
import type { Server } from "./servers.js";

/** What one load on a server showed. */
export interface Sample {
  readonly requestsPerSecond: number;
  /** Latencies in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds that the server process computed for each request; not a number where that cannot be seen. */
  readonly cpu: number;
}

export interface Measured {
  readonly sample: Sample;
  readonly answers: readonly string[];
}

const isLinux = process.platform === "linux";
const ticksPerSecond = isLinux ? Number(execFileSync("getconf", ["CLK_TCK"])) : Number.NaN;

/** Puts a load on a server and watches what that costs the server. */
export async function measure(
  { pid }: Server,
  generator: Generator,
  load: Load,
): Promise<Measured> {
  const before = cpuSeconds(pid);
  const { requests, seconds, p50, p99, answers } = await generator.run(load);
  const cpu = ((cpuSeconds(pid) - before) * 1_000_000) / requests;
  return { sample: { requestsPerSecond: requests / seconds, p50, p99, cpu }, answers };
}

/** What one part of a request costs, where it has many. Latencies have no parts. */
export function perPart({ requestsPerSecond, cpu }: Sample, count: number): Sample {
  return {
    requestsPerSecond: requestsPerSecond * count,
    p50: Number.NaN,
    p99: Number.NaN,
    cpu: cpu / count,
  };
}

/** The time that all threads of a process have computed, in it and in the kernel for it. */
export function cpuSeconds(pid: number): number {
  if (!isLinux) {
    return Number.NaN;
  }
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  // The second field is the name of the program in brackets, which may hold anything.
  const fromThird = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fromThird[11]) + Number(fromThird[12])) / ticksPerSecond;
}

export interface Memory {
  /** In megabytes. */
  readonly whole: number;
  /** Without the files that are mapped into it, its program and its data, which the system can take back. */
  readonly own: number;
}

/** The memory that a process holds now. */
export function memoryOf({ pid }: Server): Memory {
  const status = isLinux ? readFileSync(`/proc/${pid}/status`, "utf8") : "";
  const megabytes = (name: string) =>
    Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? Number.NaN) / 1024;
  return { whole: megabytes("VmRSS"), own: megabytes("RssAnon") };
}
