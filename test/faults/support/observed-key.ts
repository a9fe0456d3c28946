import { setTimeout as delay } from "node:timers/promises";
import type { DatabaseClock } from "./database-clock.js";

/** An answer to whether a key works, and between which moments it was found, by the database's clock. */
export interface Observation {
  readonly works: boolean;
  readonly asked: number;
  readonly answered: number;
}

/** How far apart questions are, and how long after its end a key is asked about. */
const pause = 30;
const afterEnd = 700;

/** Asks whether a key works, again and again, from now until it should no longer. */
export async function observe(
  end: number,
  clock: DatabaseClock,
  ask: () => Promise<boolean>,
): Promise<readonly Observation[]> {
  const seen: Observation[] = [];
  while (clock() < end + afterEnd) {
    const asked = clock();
    const works = await ask();
    seen.push({ works, asked, answered: clock() });
    await delay(pause * (0.5 + Math.random()));
  }
  return seen;
}

/** What clocks and their comparison may be off by. */
const tolerance = 50;

/** The observations that no clock can explain: a key that works after its end, or does not before. */
export function wrongOnes(seen: readonly Observation[], end: number): readonly Observation[] {
  return seen.filter(({ works, asked, answered }) =>
    works ? asked > end + tolerance : answered < end - tolerance,
  );
}
