import { spawnSync } from "node:child_process";
import { describe } from "@jest/globals";

/** Tests of what takes a tool. Where the machine does not have it they are passed over, and say so. */
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
