import { setTimeout as delay } from "node:timers/promises";
import type { DatabaseClock } from "./database-clock.js";

/** Whether a key worked, with the times of request and response by `performance.now()`. */
export interface Observation {
  readonly works: boolean;
  readonly asked: number;
  readonly answered: number;
}

/** The interval of the requests in milliseconds, and their number after the expiry of a key. */
const pause = 30;
const questionsAfter = 10;

/** Uses a key repeatedly, until some time after its expiry. */
export async function observe(
  end: number,
  clock: DatabaseClock,
  ask: () => Promise<boolean>,
): Promise<readonly Observation[]> {
  const seen: Observation[] = [];
  for (let after = 0; after < questionsAfter; ) {
    const asked = performance.now();
    const works = await ask();
    seen.push({ works, asked, answered: performance.now() });
    after += clock.earliest(asked) > end ? 1 : 0;
    await delay(pause * (0.5 + Math.random()));
  }
  return seen;
}

/** The wrong observations: a key that works after its expiry, or fails before it. */
export function wrongOnes(
  seen: readonly Observation[],
  end: number,
  clock: DatabaseClock,
): readonly Observation[] {
  return seen.filter(({ works, asked, answered }) =>
    works ? clock.earliest(asked) > end : clock.latest(answered) < end,
  );
}
