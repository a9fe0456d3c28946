import { relative } from "node:path";
import { expect } from "@jest/globals";
import fc from "fast-check";
import { isFullSuite } from "../support/jest/suite.js";

/** The same inputs come each time, unless another seed is given, or `random`. */
const { FUZZ_SEED = "1", FUZZ_FACTOR = "1" } = process.env;
export const seed =
  FUZZ_SEED === "random" ? Math.floor(Math.random() * 2 ** 31) : Number(FUZZ_SEED);

const chunk = 1_000;

/** Makes so many inputs, or another multiple of them where that is asked for, a few at a time. */
export function* seeded<T>(arbitrary: fc.Arbitrary<T>, count: number): Generator<T> {
  const all = Math.ceil(count * Number(FUZZ_FACTOR));
  for (let made = 0; made < all; made += chunk) {
    const numRuns = Math.min(chunk, all - made);
    yield* fc.sample(arbitrary, { numRuns, seed: (seed + made) | 0 });
  }
}

/** What was answered as it should not have been. Of many, the first few tell enough. */
interface Finding {
  readonly input: unknown;
  readonly answer: unknown;
}

const enough = 5;

/** Where findings are put. Tells how to see them again where there are any. */
export function createFindings() {
  const found: Finding[] = [];
  return {
    add(input: unknown, answer: unknown): void {
      if (found.length < enough) {
        found.push({ input, answer });
      }
    },
    get isFull() {
      return found.length >= enough;
    },
    expectNone(): void {
      const { testPath = "" } = expect.getState();
      const suite = isFullSuite ? "TEST_SUITE=full " : "";
      const again = `${suite}FUZZ_SEED=${seed} npx jest ${relative(process.cwd(), testPath)}`;
      expect({ again, found }).toEqual({ again, found: [] });
    },
  };
}

export type Findings = ReturnType<typeof createFindings>;
