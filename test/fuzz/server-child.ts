/**
 * Runs a server on the given store in its own process. It prints its port and
 * fixtures as a line of JSON, and a report for each line that it reads. An
 * unhandled rejection ends the process.
 */
import { createInterface } from "node:readline";
import { createRestApi } from "../support/api/rest.js";
import { rateLimitsOff } from "../support/service/rate-limits-off.js";
import { type Engine, startServer } from "../support/service/server.js";
import { allowedOrigin, createFuzzFixtures } from "./fixtures.js";

function print(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/**
 * Long timeouts, so that a busy MongoDB causes no 5xx. By default, calls wait two
 * seconds for a connection.
 */
const timeouts = ["waitQueue", "socket", "connect", "serverSelection"]
  .map((wait) => `${wait}TimeoutMS=120000`)
  .join("&");

function extendMongoTimeouts(): void {
  const { MONGODB_TEST_URI: uri = "" } = process.env;
  const prefix = uri.includes("?") ? `${uri}&` : `${uri.replace(/\/?$/, "/")}?`;
  process.env.MONGODB_TEST_URI = prefix + timeouts;
}

async function main(engine: Engine): Promise<void> {
  extendMongoTimeouts();
  const environment = {
    ...rateLimitsOff,
    LOG_LEVEL: "warn",
    CORS_ORIGINS: allowedOrigin,
    // A slow machine must not cause timeouts.
    REQUEST_TIMEOUT: "10m",
    HEADER_TIMEOUT: "1m",
    BODY_TIMEOUT: "1m",
    // Node keeps the connection of a client that violates HTTP/2 until the timeout.
    CONNECTION_LIMIT: "20000",
    ADDRESS_CONNECTION_LIMIT: "20000",
  };
  const server = await startServer(engine, { environment });
  const builtInCount = Object.getOwnPropertyNames(Object.prototype).length;
  print({ port: server.port, ...(await createFuzzFixtures(server, createRestApi(server.url))) });
  const input = createInterface(process.stdin);
  input.on("line", () => {
    const isPolluted = Object.getOwnPropertyNames(Object.prototype).length !== builtInCount;
    // Random input includes forwarding headers.
    const logs = server.logs.filter(({ msg }) => !String(msg).startsWith("forwarding headers"));
    print({ logs, isPolluted });
  });
  // When the parent exits, the server closes and deletes its data.
  input.on("close", () => void server.close());
}

void main(process.argv[2] as Engine);
