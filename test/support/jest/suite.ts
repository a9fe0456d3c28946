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

/** The tools that must not be missing, separated by spaces. */
const requiredTools = (process.env.REQUIRE_TOOLS ?? "").split(" ");

/**
 * Defines tests that need a tool. Without it, they are skipped, or fail if REQUIRE_TOOLS names it.
 * Slow ones run in the full suite only.
 */
export function describeWith(
  [command, ...args]: readonly [string, ...string[]],
  title: string,
  tests: () => void,
  { isSlow = false }: { readonly isSlow?: boolean } = {},
): void {
  const reason = `${command} is missing or incomplete`;
  if (isSlow && !isFullSuite) {
    describe.skip(`${title} (not run: slow, see npm run test:full)`, tests);
  } else if (spawnSync(command, args).status === 0) {
    describe(title, tests);
  } else if (requiredTools.includes(command)) {
    it(title, () => {
      throw new Error(reason);
    });
  } else {
    describe.skip(`${title} (not run: ${reason})`, tests);
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
