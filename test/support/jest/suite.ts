import { spawnSync } from "node:child_process";
import { describe, it } from "@jest/globals";

/**
 * `npm test` runs the quick suite. `npm run test:full` sets this variable and
 * adds the files named `*.full.test.ts`.
 */
export const isFullSuite = process.env.TEST_SUITE === "full";

/** How often to repeat something: less in `npm test` than in `npm run test:full`. */
export function repetitions({ quick, full }: { quick: number; full: number }): number {
  return isFullSuite ? full : quick;
}

/** Tests that need a tool. A machine without it skips them, and says so. */
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

/** A test that a machine may be unable to run. It is then skipped, and says why. */
export function itIf(canRun: boolean, title: string, whyNot: string, test: () => Promise<void>) {
  if (canRun) {
    it(title, test);
  } else {
    it.skip(`${title} (not run: ${whyNot})`, test);
  }
}
