import { createInterface } from "node:readline";
import { createGuard } from "../../src/client/create-guard.js";

/**
 * A guard in a process of its own. It tells its process id, then answers the
 * line `check` with what the guard answers. On `close` it closes the guard in
 * the midst of checks, and has to end by itself.
 */
const [url = "", key = "", subject = "", maxStaleness = ""] = process.argv.slice(2);

function tell(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

const guard = createGuard({ url, key, maxStaleness: Number(maxStaleness) });
const input = createInterface(process.stdin);
const ask = (permission = "token:read") => guard.check(subject, permission);

input.on("line", async (line) => {
  if (line === "check") {
    tell(await ask());
    return;
  }
  const underWay = Promise.all([ask("token:use"), ask("token:create"), ask("token:delete")]);
  await guard.close();
  tell({ answers: await underWay });
  input.close();
  process.stdin.destroy();
});
tell({ pid: process.pid });
