import { createInterface } from "node:readline";
import { createGuard } from "../../src/client/create-guard.js";

/**
 * Runs a guard in a child process. Prints its process id, then the decision for
 * each line `check`. On `close` it closes the guard during checks, after which
 * the process must exit.
 */
const [url = "", key = "", principal = "", maxStaleness = ""] = process.argv.slice(2);

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

const guard = createGuard({ url, key, maxStaleness: Number(maxStaleness) });
const input = createInterface(process.stdin);
const runCheck = (permission = "token:read") => guard.check(principal, permission);

input.on("line", async (line) => {
  if (line === "check") {
    print(await runCheck());
    return;
  }
  const pending = Promise.all([
    runCheck("token:use"),
    runCheck("token:create"),
    runCheck("token:delete"),
  ]);
  await guard.close();
  print({ decisions: await pending });
  input.close();
  process.stdin.destroy();
});
print({ pid: process.pid });
