import { setTimeout as delay } from "node:timers/promises";
import type { DatabaseClock } from "./database-clock.js";

/** An answer to whether a key works, with the times of question and answer as `performance.now()` tells them. */
export interface Observation {
  readonly works: boolean;
  readonly asked: number;
  readonly answered: number;
}

/** How far apart questions are, in milliseconds, and how many are asked after the end of a key. */
const pause = 30;
const questionsAfter = 10;

/** Asks whether a key works, again and again, until it was asked some times after its end. */
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

/** The observations that are wrong for certain: a key that works after its end, or does not before. */
export function wrongOnes(
  seen: readonly Observation[],
  end: number,
  clock: DatabaseClock,
): readonly Observation[] {
  return seen.filter(({ works, asked, answered }) =>
    works ? clock.earliest(asked) > end : clock.latest(answered) < end,
  );
}
