import { spawnSync } from "node:child_process";
import { describe, it } from "@jest/globals";

/**
 * `npm test` runs the quick suite. `npm run test:full` sets this variable and
 * adds the files named `*.full.test.ts`.
 */
export const isFullSuite = process.env.TEST_SUITE === "full";

/** The number of repetitions in the current suite. */
export function repetitions({ quick, full }: { quick: number; full: number }): number {
  return isFullSuite ? full : quick;
}

/** Defines tests that need a tool, and skips them without it. */
export function describeWith(
  [command, ...args]: readonly [string, ...string[]],
  title: string,
  tests: () => void,
): void {
  if (spawnSync(command, args).status === 0) {
    describe(title, tests);
  } else {
    describe.skip(`${title} (not run: ${command} is missing or incomplete)`, tests);
  }
}

/** Defines a test, or skips it with a reason. */
export function itIf(canRun: boolean, title: string, reason: string, test: () => Promise<void>) {
  if (canRun) {
    it(title, test);
  } else {
    it.skip(`${title} (not run: ${reason})`, test);
  }
}
