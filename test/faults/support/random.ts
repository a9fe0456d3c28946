import { createHash } from "node:crypto";

/** Seeded random numbers from 0 to 1. */
export function createRandom(seed: number): () => number {
  let count = 0;
  return () => createHash("sha256").update(`${seed} ${count++}`).digest().readUInt32BE() / 2 ** 32;
}
