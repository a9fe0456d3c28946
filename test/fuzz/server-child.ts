/**
 * A server in a process of its own, to be treated badly, on the store that is
 * named. Tells where it is and
 * whose keys there are in a line of JSON, and in another, for each line that it
 * reads, what became of it. A promise that nobody attends to ends it.
 */
import { createInterface } from "node:readline";
import { createRestApi } from "../support/api/rest.js";
import { rateLimitsOff } from "../support/service/rate-limits-off.js";
import { type Engine, startServer } from "../support/service/server.js";
import { createFuzzWorld, goodOrigin } from "./world.js";

function tell(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/**
 * A MongoDB that others keep busy answers late, and callers who wait for a
 * connection to it, two seconds at most, would be told to come again. Those
 * here wait for minutes, so that a 5xx is due to what was sent.
 */
const patience = ["waitQueue", "socket", "connect", "serverSelection"]
  .map((wait) => `${wait}TimeoutMS=120000`)
  .join("&");

function beWithPatience(): void {
  const { MONGODB_TEST_URI: uri = "" } = process.env;
  const beginning = uri.includes("?") ? `${uri}&` : `${uri.replace(/\/?$/, "/")}?`;
  process.env.MONGODB_TEST_URI = beginning + patience;
}

async function main(engine: Engine): Promise<void> {
  beWithPatience();
  const environment = {
    ...{ ...rateLimitsOff, LOG_LEVEL: "warn", CORS_ORIGINS: goodOrigin },
    // Nothing is refused because the machine is slow.
    ...{ REQUEST_TIMEOUT: "10m", HEADER_TIMEOUT: "1m", BODY_TIMEOUT: "1m" },
  };
  const server = await startServer(engine, { environment });
  const builtIn = Object.getOwnPropertyNames(Object.prototype).length;
  tell({ port: server.port, ...(await createFuzzWorld(server, createRestApi(server.url))) });
  const asked = createInterface(process.stdin);
  asked.on("line", () => {
    const isPolluted = Object.getOwnPropertyNames(Object.prototype).length !== builtIn;
    tell({ complaints: server.logs, isPolluted });
  });
  // With nobody to ask it, it goes, and leaves no data behind.
  asked.on("close", () => void server.close());
}

void main(process.argv[2] as Engine);
