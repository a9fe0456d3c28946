import { setTimeout as delay } from "node:timers/promises";
import type { CreatedApplication, Keys } from "../seed.js";
import { createRestClient } from "./clients.js";
import type { Journeys } from "./journeys.js";

/** Concurrent journeys while the highest rate is measured. */
const maxRateConcurrency = 48;

/** More journeys in progress mean that the service cannot keep up. */
const maxInProgress = 2_000;

/** Runs journeys at full load and returns how many succeeded per second. */
export async function findMaxRate(journeys: Journeys, seconds: number): Promise<number> {
  const started = performance.now();
  const deadline = started + seconds * 1000;
  let succeeded = 0;
  async function runJourneys(): Promise<void> {
    while (performance.now() < deadline) {
      if (await journeys.next()) {
        succeeded++;
      }
    }
  }
  await Promise.all(Array.from({ length: maxRateConcurrency }, runJourneys));
  return succeeded / ((performance.now() - started) / 1000);
}

/** Starts journeys at a constant rate, without waiting for earlier ones. */
export async function runAtRate(journeys: Journeys, rate: number, seconds: number): Promise<void> {
  const started = performance.now();
  const inProgress = new Set<Promise<unknown>>();
  let count = 0;
  while (performance.now() - started < seconds * 1000) {
    const due = Math.floor(((performance.now() - started) / 1000) * rate);
    while (count < due) {
      count++;
      const journey = journeys.next();
      inProgress.add(journey);
      journey.then(() => inProgress.delete(journey));
    }
    if (inProgress.size > maxInProgress) {
      throw new Error(`the service cannot keep up with ${Math.round(rate)} journeys per second`);
    }
    await delay(5);
  }
  await Promise.all(inProgress);
}

/** The effect of a flood of large invalid requests on another caller. */
export interface FloodResult {
  /** The number of refused invalid requests. */
  readonly refused: number;
  /** The latencies of the other caller in milliseconds. */
  readonly latencies: readonly number[];
}

const floodConnections = 64;

/** The pause of the other caller between two calls. */
const pauseMs = 10;

/** A body of 438 kB in which no permission is valid. */
const invalidBody = JSON.stringify({
  name: "Invalid",
  type: "private",
  rules: Array.from({ length: 1_000 }, (_, rule) => ({
    priority: 1,
    container: "/pci/",
    transform: "mask",
    permissions: Array.from({ length: 8 }, (_, index) =>
      `NO PERMISSION ${rule} ${index}`.padEnd(43, "x"),
    ),
  })),
});

/** Sends invalid requests as fast as they are refused, while another caller reads. */
export async function measureDuringFlood(
  url: string,
  keys: Keys,
  seconds: number,
): Promise<FloodResult> {
  const flood = createRestClient(url, floodConnections);
  const reader = createRestClient(url, 1);
  const { key } = keys.private[0] as CreatedApplication;
  const latencies: number[] = [];
  const deadline = performance.now() + seconds * 1_000;
  let refused = 0;

  async function sendInvalid(): Promise<void> {
    while (performance.now() < deadline) {
      const options = { expect: [400, 429, 503], body: invalidBody };
      await flood.call(keys.management, "POST", "/applications", options);
      refused++;
    }
  }

  async function read(): Promise<void> {
    while (performance.now() < deadline) {
      const started = performance.now();
      await reader.call(key, "GET", "/applications/key", { expect: [200] });
      latencies.push(performance.now() - started);
      await delay(pauseMs);
    }
  }

  try {
    await Promise.all([read(), ...Array.from({ length: floodConnections }, sendInvalid)]);
  } finally {
    flood.close();
    reader.close();
  }
  return { refused, latencies };
}
