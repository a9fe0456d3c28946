import { memoryOf, openFiles } from "../processes.js";
import { slopeOf } from "../statistics.js";

/** The state of the service at a moment. */
export interface Sample {
  readonly minutes: number;
  /** In MiB, without the data file that is mapped into it. */
  readonly memory: number;
  readonly files: number;
  /** How long the service took to say that it is alive, in milliseconds. */
  readonly delay: number;
}

const interval = 2_000;

/** Looks at a service again and again until it is stopped. */
export function startGauges(url: string, pid: number, dataFolder: string) {
  const samples: Sample[] = [];
  const begun = performance.now();
  let isStopped = false;

  async function look(): Promise<void> {
    const asked = performance.now();
    const response = await fetch(`${url}/healthz`);
    await response.arrayBuffer();
    samples.push({
      minutes: (asked - begun) / 60_000,
      memory: memoryOf(pid, dataFolder).own,
      files: openFiles(pid),
      delay: performance.now() - asked,
    });
  }

  async function keepLooking(): Promise<void> {
    while (!isStopped) {
      await look();
      await new Promise((resolve) => setTimeout(resolve, interval));
    }
  }

  const looking = keepLooking();
  return {
    async stop(): Promise<readonly Sample[]> {
      isStopped = true;
      await looking;
      return samples;
    },
  };
}

/** By how much a gauge rises in a minute, once it is warm. */
export function risePerMinute(samples: readonly Sample[], of: (sample: Sample) => number): number {
  const warm = samples.slice(Math.floor(samples.length * warmUp));
  return slopeOf(warm.map((sample) => ({ x: sample.minutes, y: of(sample) })));
}

/** The share of a soak in which caches fill and code is compiled. */
export const warmUp = 0.25;
