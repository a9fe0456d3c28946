import { createHash } from "node:crypto";

/** Random numbers from 0 to 1, the same ones for the same seed. */
export function createRandom(seed: number): () => number {
  let count = 0;
  return () => createHash("sha256").update(`${seed} ${count++}`).digest().readUInt32BE() / 2 ** 32;
}
