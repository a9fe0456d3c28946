import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders,
} from "node:http2";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it, jest } from "@jest/globals";
import {
  AccessService,
  CheckAccessRequestSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { envelope } from "../support/http/raw-grpc.js";
import { repetitions } from "../support/jest/suite.js";
import { rateLimitsOff } from "../support/service/rate-limits-off.js";
import { withTempFolder } from "../support/service/run-latchkey.js";
import { useServices } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import { callUntilRefused, type DrainResult, type LostRequest } from "./support/draining-load.js";
import { createRandom } from "./support/random.js";

jest.setTimeout(2 * hangTimeout);

/** Timeouts that even a busy machine does not reach. */
const environment = {
  ...rateLimitsOff,
  SHUTDOWN_GRACE: "60s",
  BODY_TIMEOUT: "120s",
  HEADER_TIMEOUT: "60s",
};

/**
 * How long a stopping service keeps idle connections open, in milliseconds.
 * Requests sent in this time must get a response.
 */
const idleGrace = 500;

const start = useServices();
const random = createRandom(4);

/** Whether a new connection is refused. */
async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  } finally {
    socket.destroy();
  }
}

/** Stops a service under load, and returns the results of the calls. */
function stopUnderLoad(WORKERS: string): Promise<DrainResult & { readonly stoppedAt: number }> {
  return withTempFolder(async (DATA_DIR) => {
    const { url, firstKey, process } = await start({ ...environment, DATA_DIR, WORKERS });
    const result: DrainResult = { responses: {}, lost: [] };
    const load = callUntilRefused({ url, key: firstKey }, result);
    const isLoaded = async () =>
      ["HTTP 200", "HTTP 201", "gRPC 0"].every((kind) => (result.responses[kind] ?? 0) > 10);
    await until(isLoaded);
    // A random delay hits the service in different states.
    await delay(random() * 50);
    const stoppedAt = performance.now();
    process.child.kill("SIGTERM");
    await load;
    expect(await process.ended()).toBe(0);
    expect(process.output.stdout).toContain('"msg":"stopped"');
    return { ...result, stoppedAt };
  });
}

/** Whether the service had to respond to a lost request. */
function isDropped(lost: LostRequest, stoppedAt: number): boolean {
  const { isReused, isRefused, sentAt, flushedAt } = lost;
  const mayBeLost = sentAt > stoppedAt && (!isReused || isRefused);
  return flushedAt < stoppedAt + idleGrace && !mayBeLost;
}

describe("a service under load that receives SIGTERM", () => {
  it.each(["1", "2"])(
    "responds to all requests with WORKERS=%s, then exits with 0",
    async (workers) => {
      for (let round = 0; round < repetitions({ quick: 1, full: 2 }); round++) {
        const { responses, lost, stoppedAt } = await stopUnderLoad(workers);
        expect(lost.filter((request) => isDropped(request, stoppedAt))).toEqual([]);
        expect(Object.keys(responses).sort()).toEqual(["HTTP 200", "HTTP 201", "gRPC 0"]);
        const connectionHeaders = lost
          .filter(({ flushedAt }) => flushedAt < stoppedAt + idleGrace)
          .flatMap(({ lastConnectionHeader }) => lastConnectionHeader ?? []);
        expect(connectionHeaders.filter((header) => header !== "close")).toEqual([]);
      }
    },
  );
});

/** Sends the head of an HTTP/1.1 request. Returns a function that sends the body and waits for the response. */
async function startHttp1(port: number, key: string): Promise<() => Promise<string>> {
  const socket = connect(port, "127.0.0.1");
  let received = "";
  socket.on("data", (chunk) => {
    received += chunk;
  });
  socket.on("error", () => {});
  const closed = new Promise((resolve) => socket.on("close", resolve));
  const body = '{"name":""}';
  socket.write(
    `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${key}\r\nexpect: 100-continue\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  await once(socket, "data");
  return async () => {
    received = "";
    socket.write(body);
    await closed;
    return received || "closed early";
  };
}

/** Sends the headers of a gRPC call. Returns a function that sends the message and waits for the status. */
async function startGrpc(session: ClientHttp2Session, key: string): Promise<() => Promise<string>> {
  const stream = session.request({
    ":method": "POST",
    ":path": rpcPath(AccessService.method.checkAccess),
    "content-type": "application/grpc",
    te: "trailers",
    "svc-api-key": key,
  });
  let result = "closed early";
  const readStatus = (headers: IncomingHttpHeaders) => {
    const { "grpc-status": status } = headers;
    result = status === undefined ? result : `grpc-status: ${status}`;
  };
  stream.on("response", readStatus);
  stream.on("trailers", readStatus);
  stream.on("error", () => {});
  const closed = new Promise((resolve) => stream.on("close", resolve));
  // Frames are read in order, so the headers are read before the ping.
  await new Promise((resolve) => session.ping(resolve));
  const check = create(CheckAccessRequestSchema, {
    principal: { case: "key", value: key },
    permission: "access:check",
  });
  return async () => {
    stream.end(envelope(toBinary(CheckAccessRequestSchema, check)));
    stream.resume();
    await closed;
    return result;
  };
}

describe("a service that receives SIGTERM while it reads requests", () => {
  it("refuses new connections and completes open requests", () =>
    withTempFolder(async (DATA_DIR) => {
      const { url, port, firstKey, process } = await start({ ...environment, DATA_DIR });
      const session = connectHttp2(url);
      session.on("error", () => {});
      const finishHttp1 = await startHttp1(port, firstKey);
      const finishGrpc = await startGrpc(session, firstKey);
      process.child.kill("SIGTERM");
      await process.until(/stopping on SIGTERM/);
      await until(() => isRefused(port));
      // By then it has closed all idle connections.
      await delay(2 * idleGrace);

      expect(await finishHttp1()).toMatch(/^HTTP\/1.1 400 .*\r\nConnection: close\r\n/is);
      expect(await finishGrpc()).toBe("grpc-status: 0");
      session.close();
      expect(await process.ended()).toBe(0);
    }));
});
