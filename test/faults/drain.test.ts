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
import { CheckAccessRequestSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { envelope } from "../support/http/raw-grpc.js";
import { repetitions } from "../support/jest/suite.js";
import { withTempFolder } from "../support/service/process.js";
import { rateLimitsOff } from "../support/service/rate-limits-off.js";
import { useServices } from "../support/service/service-process.js";
import { hangTimeout, until } from "../support/until.js";
import { callUntilRefused, type DrainTally, type LostRequest } from "./support/draining-load.js";
import { createRandom } from "./support/random.js";

jest.setTimeout(2 * hangTimeout);

/** So long that a busy machine does not use it up. */
const environment = {
  ...rateLimitsOff,
  SHUTDOWN_GRACE: "60s",
  BODY_TIMEOUT: "120s",
  HEADER_TIMEOUT: "60s",
};

/**
 * For so long, in milliseconds, a service that stops leaves connections open
 * on which nothing is under way: what is sent before has to be answered. A
 * client that stands still for longer finds them closed.
 */
const farewell = 500;

const start = useServices();
const random = createRandom(4);

/** Whether a new connection is refused. */
async function isRefused(port: number): Promise<boolean> {
  const late = connect(port, "127.0.0.1");
  try {
    await once(late, "connect");
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  } finally {
    late.destroy();
  }
}

/** Tells a service under load to stop, and answers what became of the calls. */
function stopUnderLoad(WORKERS: string): Promise<DrainTally & { readonly stoppedAt: number }> {
  return withTempFolder(async (DATA_DIR) => {
    const { url, firstKey, process } = await start({ ...environment, DATA_DIR, WORKERS });
    const tally: DrainTally = { answers: {}, lost: [] };
    const load = callUntilRefused({ url, key: firstKey }, tally);
    const isUnderWay = async () =>
      ["HTTP 200", "HTTP 201", "gRPC 0"].every((kind) => (tally.answers[kind] ?? 0) > 10);
    await until(isUnderWay);
    // Much of what may go wrong lasts but a moment.
    await delay(random() * 50);
    const stoppedAt = performance.now();
    process.child.kill("SIGTERM");
    await load;
    expect(await process.ended()).toBe(0);
    expect(process.output.stdout).toContain('"msg":"stopped"');
    return { ...tally, stoppedAt };
  });
}

/** Whether a request was lost that had to be answered. */
function isDropped(lost: LostRequest, stoppedAt: number): boolean {
  const { isInUse, isRefused, sentAt, flushedAt } = lost;
  const mayBeLost = sentAt > stoppedAt && (!isInUse || isRefused);
  return flushedAt < stoppedAt + farewell && !mayBeLost;
}

describe("a service under load that receives SIGTERM", () => {
  it.each(["1", "2"])(
    "responds to all requests with WORKERS=%s, then exits with 0",
    async (workers) => {
      for (let round = 0; round < repetitions({ quick: 1, full: 2 }); round++) {
        const { answers, lost, stoppedAt } = await stopUnderLoad(workers);
        expect(lost.filter((one) => isDropped(one, stoppedAt))).toEqual([]);
        expect(Object.keys(answers).sort()).toEqual(["HTTP 200", "HTTP 201", "gRPC 0"]);
        const lastWords = lost
          .filter(({ flushedAt }) => flushedAt < stoppedAt + farewell)
          .flatMap(({ lastWord }) => lastWord ?? []);
        expect(lastWords.filter((word) => word !== "close")).toEqual([]);
      }
    },
  );
});

/** Begins a request over HTTP/1.1 that the service waits to read the body of. Answers how to finish it. */
async function beginHttp1(port: number, key: string): Promise<() => Promise<string>> {
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
    return received || "cut off";
  };
}

/** Begins a call of gRPC, which the service has read the headers of. Answers how to finish it. */
async function beginGrpc(session: ClientHttp2Session, key: string): Promise<() => Promise<string>> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/latchkey.v1.AccessService/CheckAccess",
    "content-type": "application/grpc",
    te: "trailers",
    "svc-api-key": key,
  });
  let end = "cut off";
  const note = (headers: IncomingHttpHeaders) => {
    const { "grpc-status": status } = headers;
    end = status === undefined ? end : `grpc-status: ${status}`;
  };
  stream.on("response", note);
  stream.on("trailers", note);
  stream.on("error", () => {});
  const closed = new Promise((resolve) => stream.on("close", resolve));
  // Frames are read in their order.
  await new Promise((resolve) => session.ping(resolve));
  const check = create(CheckAccessRequestSchema, { key, permission: "access:check" });
  return async () => {
    stream.end(envelope(toBinary(CheckAccessRequestSchema, check)));
    stream.resume();
    await closed;
    return end;
  };
}

describe("a service that receives SIGTERM while it reads requests", () => {
  it("refuses new connections and completes open requests", () =>
    withTempFolder(async (DATA_DIR) => {
      const { url, port, firstKey, process } = await start({ ...environment, DATA_DIR });
      const session = connectHttp2(url);
      session.on("error", () => {});
      const finishHttp1 = await beginHttp1(port, firstKey);
      const finishGrpc = await beginGrpc(session, firstKey);
      process.child.kill("SIGTERM");
      await process.until(/stopping on SIGTERM/);
      await until(() => isRefused(port));
      // By then it has closed all connections on which nothing is under way.
      await delay(2 * farewell);

      expect(await finishHttp1()).toMatch(/^HTTP\/1.1 400 .*\r\nConnection: close\r\n/is);
      expect(await finishGrpc()).toBe("grpc-status: 0");
      session.close();
      expect(await process.ended()).toBe(0);
    }));
});
