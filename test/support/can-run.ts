import { spawnSync } from "node:child_process";
import { describe, it } from "@jest/globals";

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
