import { relative } from "node:path";
import { expect } from "@jest/globals";
import fc from "fast-check";
import { isFullSuite } from "../support/jest/suite.js";

/** Inputs are the same in each run unless FUZZ_SEED is another number or `random`. */
const { FUZZ_SEED = "1", FUZZ_FACTOR = "1" } = process.env;
export const seed =
  FUZZ_SEED === "random" ? Math.floor(Math.random() * 2 ** 31) : Number(FUZZ_SEED);

/** Timeout of a response or the end of a connection in milliseconds, longer than any timeout of the server. */
export const fuzzTimeout = 180_000;

const batchSize = 1_000;

/** Generates `count` inputs times FUZZ_FACTOR, in batches. */
export function* generate<T>(arbitrary: fc.Arbitrary<T>, count: number): Generator<T> {
  const total = Math.ceil(count * Number(FUZZ_FACTOR));
  for (let generated = 0; generated < total; generated += batchSize) {
    const numRuns = Math.min(batchSize, total - generated);
    yield* fc.sample(arbitrary, { numRuns, seed: (seed + generated) | 0 });
  }
}

/** An input with an unexpected response. */
interface Failure {
  readonly input: unknown;
  readonly response: unknown;
}

const maxFailures = 5;

/** Collects the first few failures, and shows how to reproduce them. */
export function createFailureLog() {
  const failures: Failure[] = [];
  return {
    add(input: unknown, response: unknown): void {
      if (failures.length < maxFailures) {
        failures.push({ input, response });
      }
    },
    get isFull() {
      return failures.length >= maxFailures;
    },
    expectEmpty(): void {
      const { testPath = "" } = expect.getState();
      const suite = isFullSuite ? "TEST_SUITE=full " : "";
      const reproduce = `${suite}FUZZ_SEED=${seed} npx jest ${relative(process.cwd(), testPath)}`;
      expect({ reproduce, failures }).toEqual({ reproduce, failures: [] });
    },
  };
}

export type FailureLog = ReturnType<typeof createFailureLog>;
