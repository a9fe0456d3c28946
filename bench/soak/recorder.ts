import { setTimeout as delay } from "node:timers/promises";
import { withTimeout } from "../../src/lib/timeout.js";
import { countOpenFiles, getMemory, listProcessTree } from "../processes.js";
import { slopeOf } from "../report/table.js";

/** Records latencies and errors of the soak test. */
export interface Recorder {
  /** Runs a journey. Counts any error and returns whether it succeeded. */
  attempt(journey: () => Promise<unknown>): Promise<boolean>;
  /** Sends a request and records its latency. Fails on a timeout. */
  time<T>(kind: string, request: () => Promise<T>): Promise<T>;
  /** Latencies in milliseconds by kind of request. */
  readonly latencies: Map<string, number[]>;
  readonly errors: Errors;
}

interface Errors {
  count: number;
  /** The first few. */
  readonly examples: string[];
}

const timeoutMs = 15_000;
const maxExamples = 10;

export function createRecorder(): Recorder {
  const latencies = new Map<string, number[]>();
  const errors: Errors = { count: 0, examples: [] };
  return {
    latencies,
    errors,

    async attempt(journey) {
      try {
        await journey();
        return true;
      } catch (error) {
        errors.count++;
        if (errors.examples.length < maxExamples) {
          errors.examples.push(String(error instanceof Error ? error.message : error));
        }
        return false;
      }
    },

    async time(kind, request) {
      const started = performance.now();
      try {
        const response = await withTimeout(request(), timeoutMs, onTimeout, { keepsRunning: true });
        const recorded = latencies.get(kind) ?? [];
        recorded.push(performance.now() - started);
        latencies.set(kind, recorded);
        return response;
      } catch (error) {
        throw new Error(`${kind}: ${error}`, { cause: error });
      }
    },
  };
}

function onTimeout(): never {
  throw new Error(`no response after ${timeoutMs / 1000} seconds`);
}

/** The resources of all processes of the service at one time. */
export interface Sample {
  readonly minutes: number;
  /** In MiB, without mapped pages. */
  readonly memory: number;
  readonly files: number;
}

const sampleIntervalMs = 2_000;

/** Samples the service while a load runs. Fails if the load fails or a process exits, even if it is replaced. */
export async function monitor(load: Promise<unknown>, pid: number): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  const started = performance.now();
  const processes = describeProcesses(pid);
  let isDone = false;

  async function takeSamples(): Promise<void> {
    while (!isDone) {
      if (describeProcesses(pid) !== processes) {
        throw new Error("a process of the service has exited");
      }
      samples.push({
        minutes: (performance.now() - started) / 60_000,
        memory: getMemory(pid).reduce((sum, { unmapped }) => sum + unmapped, 0),
        files: countOpenFiles(pid),
      });
      await delay(sampleIntervalMs);
    }
  }

  const running = load.finally(() => {
    isDone = true;
  });
  await Promise.all([running, takeSamples()]);
  return samples;
}

function describeProcesses(pid: number): string {
  try {
    return listProcessTree(pid).join();
  } catch {
    return "none";
  }
}

/** The increase of a gauge per minute after the warmup. */
export function slopePerMinute(
  samples: readonly Sample[],
  getValue: (sample: Sample) => number,
): number {
  const afterWarmup = samples.slice(Math.floor(samples.length * warmupShare));
  return slopeOf(afterWarmup.map((sample) => ({ x: sample.minutes, y: getValue(sample) })));
}

/** The first part of the run, in which caches fill and code is compiled. */
const warmupShare = 0.25;
