import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import {
  AccessService,
  StreamCheckAccessRequestSchema,
} from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { endHeaders, endStream, frame, frameType, request } from "../support/http/http2-frames.js";
import { grpcHeaders, readResponse } from "../support/http/http2-wire.js";
import { onFrames, openRaw, openRawHttp2 } from "../support/http/raw-connection.js";
import { envelope } from "../support/http/raw-grpc.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";

// Each request is small and within every limit. Many connections send
// their requests at the same moment.
const service = useAttackedService({ ...noTimeouts, BODY_BUDGET: "64mb" });

const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const asJson = { "content-type": "application/json" };

function openSessions(count: number, { url } = service): ClientHttp2Session[] {
  return Array.from({ length: count }, () => connect(url).on("error", () => {}));
}

/** Resolves when the server has read all frames sent so far. */
function waitUntilReceived(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve) => void session.ping(() => resolve()));
}

/** Waits until the service has accepted `count` connections. */
function waitUntilAccepted(count: number): Promise<void> {
  return until(async () => (await scrape(service)).sum("latchkey_connections_open") >= count);
}

describe("bodies that all finish at the same time", () => {
  /** Slow to validate, and refused for its last field. */
  const rules = Array.from({ length: 200 }, (_, at) => ({
    priority: at + 1,
    transform: "mask",
    permissions: ["token:read"],
    conditions: Array.from({ length: 3 }, () => ({
      attribute: "id",
      operator: "equals",
      value: "a",
    })),
    ...(at === 199 && { unknown: 1 }),
  }));
  const body = JSON.stringify({ name: "a", type: "private", rules });
  const start = body.slice(0, -1);

  /** Sends incomplete requests on many streams of many connections, then completes all of them. */
  async function completeTogether(path: string): Promise<number[]> {
    const statuses: number[] = [];
    const sessions = openSessions(10);
    const headers = {
      ":method": "POST",
      ":path": path,
      "svc-api-key": service.firstKey,
      ...asJson,
    };
    const streams = sessions.flatMap((session) =>
      Array.from({ length: 80 }, () => session.request(headers)),
    );
    const closed = streams.map((stream) => {
      stream.on("response", ({ ":status": status }) => statuses.push(status ?? 0));
      stream.on("error", () => {});
      stream.resume();
      return new Promise((resolve) => stream.on("close", resolve));
    });
    await Promise.all(
      streams.map((stream) => new Promise((resolve) => void stream.write(start, resolve))),
    );
    await Promise.all(sessions.map(waitUntilReceived));
    for (const stream of streams) {
      stream.end("}");
    }
    await Promise.all(closed);
    for (const session of sessions) {
      session.destroy();
    }
    return statuses;
  }

  it.each<[what: string, path: string]>([
    ["over REST", "/applications"],
    ["over Connect", createApplicationPath],
  ])("do not delay other clients: %s", async (_what, path) => {
    const statuses = await service.runAttack(() => completeTogether(path));
    expect(statuses).toEqual(Array.from({ length: 800 }, () => 400));
  });
});

describe("calls whose bodies never arrive", () => {
  const limited = useAttackedService({ ...noTimeouts, CALL_LIMIT: "1000" });

  it("are limited to half of the calls in flight, so that others are served", async () => {
    const call = { ":method": "POST", ":path": rpcPath(Health.method.check), ...asJson };
    await limited.runAttack(async (client) => {
      const sessions = openSessions(20, limited);
      const streams = sessions.flatMap((session) =>
        Array.from({ length: 120 }, () => session.request(call)),
      );
      for (const stream of streams) {
        stream.on("error", () => {});
        stream.resume();
      }
      const open = () => streams.filter(({ closed }) => !closed).length;
      await until(async () => open() <= 500);
      await client.waitForResponses(10);
      expect(open()).toBeGreaterThan(0);
      for (const session of sessions) {
        session.destroy();
      }
    });
  });
});

describe("simultaneous unauthenticated calls on hundreds of connections", () => {
  it("do not delay other clients", async () => {
    const call =
      `POST ${createApplicationPath} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n` +
      "content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}";
    await service.runAttack(async () => {
      const connections = Array.from({ length: 450 }, () => openRaw(service.port));
      await waitUntilAccepted(connections.length);
      for (const { write } of connections) {
        write(call.repeat(16));
      }
      await until(async () =>
        connections.every(({ received }) => received().includes("HTTP/1.1 401")),
      );
      for (const { socket } of connections) {
        socket.destroy();
      }
    });
  });
});

describe("simultaneous unauthenticated HTTP/2 calls on hundreds of connections", () => {
  const [connections, streams] = [900, 16];
  const calls = connections * streams;
  const onStreams = (call: (stream: number) => Buffer[]) =>
    Buffer.concat(Array.from({ length: streams }, (_, at) => call(2 * at + 1)).flat());
  const plain = onStreams((stream) => [
    frame(frameType.headers, endHeaders | endStream, stream, request("/applications/key")),
  ]);
  const headers = { ...asJson, "content-encoding": "gzip" };
  const compressed = onStreams((stream) => [
    frame(frameType.headers, endHeaders, stream, request(createApplicationPath, headers, "POST")),
    frame(frameType.data, endStream, stream, Buffer.from("{}")),
  ]);

  /** Sends the calls and disconnects when `waitForEnd` resolves. */
  async function flood(
    bytes: Buffer,
    waitUntilReady: (count: number) => Promise<void>,
    waitForEnd: (responses: () => number) => Promise<void>,
  ): Promise<void> {
    let responses = 0;
    const rawConnections = Array.from({ length: connections }, () => openRawHttp2(service.port));
    for (const connection of rawConnections) {
      onFrames(connection, (frames) => {
        responses += frames.filter(({ type }) => type === "HEADERS").length;
      });
    }
    await waitUntilReady(connections);
    for (const { write } of rawConnections) {
      write(bytes);
    }
    await waitForEnd(() => responses);
    for (const { socket } of rawConnections) {
      socket.destroy();
    }
  }

  it("all get a response, use little memory and do not delay other clients", async () => {
    await service.runAttack(async () => {
      await flood(plain, waitUntilAccepted, (responses) =>
        until(async () => responses() === calls),
      );
    });
  });

  it("use no more memory when they are canceled while queued", async () => {
    await service.runAttack(async () => {
      await flood(compressed, waitUntilAccepted, (responses) =>
        until(async () => responses() > calls / 10),
      );
    });
  });

  it("do not block clients that arrive later", async () => {
    const immediately = async () => {};
    await service.runAttack((client) =>
      flood(compressed, immediately, () => client.waitForResponses(20)),
    );
  });
});

describe("thousands of simultaneous valid calls", () => {
  const getApplicationByKeyPath = rpcPath(ApplicationService.method.getApplicationByKey);
  const unknownField = Buffer.from([0x98, 0x06, 0x01]);

  it.each<[what: string, headers: OutgoingHttpHeaders, body: Uint8Array]>([
    ["over gRPC", {}, envelope(unknownField)],
    ["over gRPC, compressed", { "grpc-encoding": "gzip" }, envelope(gzipSync(unknownField), 1)],
  ])("all get a response: %s", async (_what, more, body) => {
    const sessions = openSessions(40);
    const headers = grpcHeaders(getApplicationByKeyPath, service.firstKey, more);
    const results = await Promise.all(
      sessions.flatMap((session) =>
        Array.from({ length: 100 }, () => {
          const stream = session.request(headers);
          stream.end(body);
          return readResponse(stream);
        }),
      ),
    );
    for (const session of sessions) {
      session.destroy();
    }
    const codes = results.map(({ headers, trailers }) => ({ ...headers, ...trailers }));
    expect(new Set(codes.map((all) => all["grpc-status"]))).toEqual(new Set(["0"]));
  });
});

describe("hundreds of check streams that send without a pause", () => {
  /** Sends checks on a stream continuously. */
  function sendChecks(checks: Buffer) {
    const session = connect(service.url);
    session.on("error", () => {});
    const stream = session.request(
      grpcHeaders(rpcPath(AccessService.method.streamCheckAccess), service.firstKey),
    );
    stream.on("error", () => {});
    let received = 0;
    stream.on("data", ({ length }: Buffer) => {
      received += length;
    });
    const sendNext = () => {
      if (!stream.closed) {
        stream.write(checks, () => setImmediate(sendNext));
      }
    };
    sendNext();
    return { received: () => received, end: () => session.destroy() };
  }

  it("all get responses, use little memory and do not delay other clients", async () => {
    await service.runAttack(async (client) => {
      const principal = { case: "key", value: service.firstKey } as const;
      const check = { principal, permission: "application:read" };
      const message = create(StreamCheckAccessRequestSchema, { correlationId: "a", check });
      const encoded = envelope(toBinary(StreamCheckAccessRequestSchema, message));
      const checks = Buffer.concat(Array.from({ length: 200 }, () => encoded));
      const streams = Array.from({ length: 200 }, () => sendChecks(checks));
      await client.waitForResponses(40);
      await until(async () => streams.every(({ received }) => received() > 0));
      for (const { end } of streams) {
        end();
      }
    });
  });
});
