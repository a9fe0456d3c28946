import { setTimeout as delay } from "node:timers/promises";
import type { Keys, Made } from "../seed.js";
import { createRest } from "./clients.js";
import type { Journeys } from "./journeys.js";

/** How many journeys are under way at a time where the service is to be as busy as it can be. */
const busyLanes = 48;

/** The most that may be under way at a rate: beyond, the service is too slow for it. */
const mostUnderWay = 2_000;

/** Keeps the service as busy as it can be, and answers how many journeys went well each second. */
export async function findHighest(journeys: Journeys, seconds: number): Promise<number> {
  const begun = performance.now();
  const until = begun + seconds * 1000;
  let done = 0;
  async function keepGoing(): Promise<void> {
    while (performance.now() < until) {
      if (await journeys.next()) {
        done++;
      }
    }
  }
  await Promise.all(Array.from({ length: busyLanes }, keepGoing));
  return done / ((performance.now() - begun) / 1000);
}

/** Begins so many journeys each second, whether those before are done or not. */
export async function keepRate(journeys: Journeys, rate: number, seconds: number): Promise<void> {
  const begun = performance.now();
  const underWay = new Set<Promise<unknown>>();
  let started = 0;
  while (performance.now() - begun < seconds * 1000) {
    const due = Math.floor(((performance.now() - begun) / 1000) * rate);
    while (started < due) {
      started++;
      const journey = journeys.next();
      underWay.add(journey);
      journey.then(() => underWay.delete(journey));
    }
    if (underWay.size > mostUnderWay) {
      throw new Error(`the service cannot keep up with ${Math.round(rate)} journeys a second`);
    }
    await delay(5);
  }
  await Promise.all(underWay);
}

/** What another caller met with while large requests that are not valid were sent. */
export interface BesideInvalid {
  /** How many of those were refused. */
  readonly refused: number;
  /** How long the calls of the other caller took, in milliseconds. */
  readonly latencies: readonly number[];
}

/** How many connections send what is not valid. */
const connections = 64;

/** How long the other caller pauses between two calls, in milliseconds. */
const pause = 10;

/** Rules of 438 kB, none of whose permissions is one. */
const invalid = JSON.stringify({
  name: "Invalid",
  type: "private",
  rules: Array.from({ length: 1_000 }, (_, rule) => ({
    priority: 1,
    container: "/pci/",
    transform: "mask",
    permissions: Array.from({ length: 8 }, (_, at) =>
      `NO PERMISSION ${rule} ${at}`.padEnd(43, "x"),
    ),
  })),
});

/** Sends requests that are not valid for so many seconds, as fast as they are refused, while another caller reads. */
export async function callBesideInvalid(
  url: string,
  keys: Keys,
  seconds: number,
): Promise<BesideInvalid> {
  const flood = createRest(url, connections);
  const other = createRest(url, 1);
  const { key } = keys.private[0] as Made;
  const latencies: number[] = [];
  const until = performance.now() + seconds * 1_000;
  let refused = 0;

  async function keepSending(): Promise<void> {
    while (performance.now() < until) {
      const options = { expect: [400, 429, 503], body: invalid };
      await flood.call(keys.management, "POST", "/applications", options);
      refused++;
    }
  }

  async function keepReading(): Promise<void> {
    while (performance.now() < until) {
      const begun = performance.now();
      await other.call(key, "GET", "/applications/key", { expect: [200] });
      latencies.push(performance.now() - begun);
      await delay(pause);
    }
  }

  try {
    await Promise.all([keepReading(), ...Array.from({ length: connections }, keepSending)]);
  } finally {
    flood.close();
    other.close();
  }
  return { refused, latencies };
}
