import { setTimeout as delay } from "node:timers/promises";
import { withTimeout } from "../../src/lib/timeout.js";
import { familyOf, memoriesOf, openFiles } from "../processes.js";
import { slopeOf } from "../report/table.js";

/** What becomes of the requests of a soak. */
export interface Record {
  /** Takes a journey. Whatever goes wrong on it, in a request or between two, is counted, and answered as false. */
  attempt(journey: () => Promise<unknown>): Promise<boolean>;
  /** Makes a request of a journey, and notes how long it took. One without an answer fails as well. */
  time<T>(kind: string, request: () => Promise<T>): Promise<T>;
  /** The latencies by kind of request, in milliseconds. */
  readonly latencies: Map<string, number[]>;
  readonly errors: Errors;
}

interface Errors {
  count: number;
  /** The first few. */
  readonly examples: string[];
}

/** How long an answer may take before it counts as missing. */
const patience = 15_000;
const mostExamples = 10;

export function createRecord(): Record {
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
        if (errors.examples.length < mostExamples) {
          errors.examples.push(String(error instanceof Error ? error.message : error));
        }
        return false;
      }
    },

    async time(kind, request) {
      const begun = performance.now();
      try {
        const answer = await withTimeout(request(), patience, noAnswer, { keepsRunning: true });
        const known = latencies.get(kind) ?? [];
        known.push(performance.now() - begun);
        latencies.set(kind, known);
        return answer;
      } catch (error) {
        throw new Error(`${kind}: ${error}`, { cause: error });
      }
    },
  };
}

function noAnswer(): never {
  throw new Error(`no answer for ${patience / 1000} seconds`);
}

/** The state of all processes of the service together at a moment. */
export interface Sample {
  readonly minutes: number;
  /** In MiB, without the data file that is mapped into it. */
  readonly memory: number;
  readonly files: number;
}

const interval = 2_000;

/** Looks at a service again and again while work lasts. Fails with the work, and where a process dies, even if another takes its place. */
export async function watchDuring(
  work: Promise<unknown>,
  pid: number,
  dataFolder: string,
): Promise<readonly Sample[]> {
  const samples: Sample[] = [];
  const begun = performance.now();
  const processes = processesOf(pid);
  let isOver = false;

  async function keepLooking(): Promise<void> {
    while (!isOver) {
      if (processesOf(pid) !== processes) {
        throw new Error("a process of the service has died");
      }
      samples.push({
        minutes: (performance.now() - begun) / 60_000,
        memory: memoriesOf(pid, dataFolder).reduce((sum, { own }) => sum + own, 0),
        files: openFiles(pid),
      });
      await delay(interval);
    }
  }

  const working = work.finally(() => {
    isOver = true;
  });
  await Promise.all([working, keepLooking()]);
  return samples;
}

function processesOf(pid: number): string {
  try {
    return familyOf(pid).join();
  } catch {
    return "none";
  }
}

/** By how much a gauge rises in a minute, once it is warm. */
export function risePerMinute(samples: readonly Sample[], of: (sample: Sample) => number): number {
  const warm = samples.slice(Math.floor(samples.length * warmUp));
  return slopeOf(warm.map((sample) => ({ x: sample.minutes, y: of(sample) })));
}

/** The share of a soak in which caches fill and code is compiled. */
const warmUp = 0.25;
