/**
 * A server in a process of its own, to be treated badly. Tells where it is and
 * whose keys there are in a line of JSON, and in another, for each line that it
 * reads, what became of it. A promise that nobody attends to ends it.
 */
import { createInterface } from "node:readline";
import { createRestApi } from "../support/api-rest.js";
import { rateLimitsOff } from "../support/rate-limits-off.js";
import { startServer } from "../support/server.js";
import { createFuzzWorld, goodOrigin } from "./world.js";

function tell(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

async function main(): Promise<void> {
  const environment = { ...rateLimitsOff, LOG_LEVEL: "warn", CORS_ORIGINS: goodOrigin };
  const server = await startServer("lmdb", { environment });
  const builtIn = Object.getOwnPropertyNames(Object.prototype).length;
  tell({ port: server.port, ...(await createFuzzWorld(server, createRestApi(server.url))) });
  createInterface(process.stdin).on("line", () => {
    const isPolluted = Object.getOwnPropertyNames(Object.prototype).length !== builtIn;
    tell({ complaints: server.logs, isPolluted });
  });
}

void main();
