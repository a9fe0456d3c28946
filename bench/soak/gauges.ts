import { setTimeout as delay } from "node:timers/promises";
import { familyOf, memoriesOf, openFiles } from "../processes.js";
import { slopeOf } from "../statistics.js";

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
export const warmUp = 0.25;
