import { setTimeout as delay } from "node:timers/promises";
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
