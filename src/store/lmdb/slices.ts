import { setTimeout } from "node:timers/promises";
import type { Environment } from "./environment.js";
import type { WriteKind } from "./write-queue.js";

/** Rows that background work changes per transaction: requests do not wait long, and commits cost less than the rows. */
export const sliceSize = 64;

/**
 * Writes a slice of background work. Then rests for as long as the slice ran, which leaves
 * at least half of the time to requests. Returns the result of the work.
 */
export async function writeSlice<T>(
  { write }: Pick<Environment, "write">,
  work: () => T,
  kind: WriteKind,
): Promise<T> {
  let ranFor = 0;
  const result = await write(() => {
    const started = performance.now();
    const result = work();
    ranFor = performance.now() - started;
    return result;
  }, kind);
  await setTimeout(ranFor);
  return result;
}
