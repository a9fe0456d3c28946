import { once } from "node:events";
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { StreamCheckAccessRequestSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { endHeaders, endStream, frame, frameType, request } from "../support/http/http2-frames.js";
import { grpcHeaders, readResponse } from "../support/http/http2-wire.js";
import {
  onFrames,
  openRaw,
  openRawHttp2,
  waitForConnectionChecks,
} from "../support/http/raw-connection.js";
import { envelope } from "../support/http/raw-grpc.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";

// What is sent here is little, and within every limit. It is prepared on many
// connections, so that all of it is to be served in one moment.
const attacked = useAttackedService({ ...noTimeouts, BODY_BUDGET: "64mb" });

const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const asJson = { "content-type": "application/json" };

/** Opens connections of HTTP/2 that Node serves. */
function openSessions(count: number): ClientHttp2Session[] {
  return Array.from({ length: count }, () => connect(attacked.url).on("error", () => {}));
}

/** Resolves when the server has read all that was sent. */
function arrival(session: ClientHttp2Session): Promise<void> {
  return new Promise((resolve) => void session.ping(() => resolve()));
}

/** Waits until the service has accepted so many connections. */
function accepted(count: number): Promise<void> {
  return until(async () => (await scrape(attacked)).sum("latchkey_connections_open") >= count);
}

describe("bodies that all finish at the same time delay no other caller", () => {
  /** Takes long to look at, and is refused for its last word. */
  const rules = Array.from({ length: 200 }, (_, at) => ({
    ...{ priority: at + 1, transform: "mask", permissions: ["token:read"] },
    conditions: Array.from({ length: 3 }, () => ({
      attribute: "id",
      operator: "equals",
      value: "a",
    })),
    ...(at === 199 && { unknown: 1 }),
  }));
  const body = JSON.stringify({ name: "a", type: "private", rules });
  const beginning = body.slice(0, -1);

  /** Sends all but the end of a request on many streams of many connections, and then all ends. */
  async function endAtOnce(path: string): Promise<number[]> {
    const statuses: number[] = [];
    const sessions = openSessions(10);
    const all = { ":method": "POST", ":path": path, "svc-api-key": attacked.firstKey, ...asJson };
    const streams = sessions.flatMap((session) =>
      Array.from({ length: 80 }, () => session.request(all)),
    );
    const closed = streams.map((stream) => {
      stream.on("response", ({ ":status": status }) => statuses.push(status ?? 0));
      stream.on("error", () => {});
      stream.resume();
      return new Promise((resolve) => stream.on("close", resolve));
    });
    await Promise.all(
      streams.map((stream) => new Promise((resolve) => void stream.write(beginning, resolve))),
    );
    await Promise.all(sessions.map(arrival));
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
    ["over Connect", createRpc],
  ])("%s", async (_what, path) => {
    // Where nobody takes turns it is 800 and more.
    const statuses = await attacked.during(() => endAtOnce(path), 500);
    expect(statuses).toEqual(Array.from({ length: 800 }, () => 400));
  });
});

describe("idle streams", () => {
  it("are limited to 1,000 in total, without any key", async () => {
    const call = { ":method": "POST", ":path": "/grpc.health.v1.Health/Check", ...asJson };
    await attacked.during(async (others) => {
      const sessions = openSessions(20);
      const streams = sessions.flatMap((session) =>
        Array.from({ length: 120 }, () => session.request(call)),
      );
      for (const stream of streams) {
        stream.on("error", () => {});
        stream.resume();
      }
      const open = () => streams.filter(({ closed }) => !closed).length;
      await until(async () => open() <= 1_000);
      await others.waitForResponses(10);
      expect(open()).toBeGreaterThan(0);
      for (const session of sessions) {
        session.destroy();
      }
    });
  });
});

describe("simultaneous calls on hundreds of connections", () => {
  it("delay no other caller, without any key", async () => {
    const call =
      `POST ${createRpc} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n` +
      "content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}";
    await attacked.during(async () => {
      const connections = Array.from({ length: 450 }, () => openRaw(attacked.port));
      await accepted(connections.length);
      for (const { write } of connections) {
        write(call.repeat(16));
      }
      await until(async () =>
        connections.every(({ received }) => received().includes("HTTP/1.1 401")),
      );
      for (const { socket } of connections) {
        socket.destroy();
      }
      // Where nobody takes turns it is 1,300 and more.
    }, 800);
  });
});

describe("simultaneous HTTP/2 calls on hundreds of connections", () => {
  const [connections, streams] = [900, 16];
  const calls = connections * streams;
  const onStreams = (call: (stream: number) => Buffer[]) =>
    Buffer.concat(Array.from({ length: streams }, (_, at) => call(2 * at + 1)).flat());
  const plain = onStreams((stream) => [
    frame(frameType.headers, endHeaders | endStream, stream, request("/applications/key")),
  ]);
  const headers = { ...asJson, "content-encoding": "gzip" };
  const compressed = onStreams((stream) => [
    frame(frameType.headers, endHeaders, stream, request(createRpc, headers, "POST")),
    frame(frameType.data, endStream, stream, Buffer.from("{}")),
  ]);

  /** Makes the calls, and hangs up when it is enough. */
  async function flood(
    bytes: Buffer,
    isAccepted: (count: number) => Promise<void>,
    isEnough: (answered: () => number) => Promise<void>,
  ): Promise<void> {
    let answered = 0;
    const opened = Array.from({ length: connections }, () => openRawHttp2(attacked.port));
    for (const connection of opened) {
      onFrames(connection, (frames) => {
        answered += frames.filter(({ type }) => type === "HEADERS").length;
      });
    }
    await isAccepted(connections);
    for (const { write } of opened) {
      write(bytes);
    }
    await isEnough(() => answered);
    for (const { socket } of opened) {
      socket.destroy();
    }
  }

  it("all get a response, use little memory and delay no other caller, without any key", async () => {
    await attacked.during(async () => {
      await flood(plain, accepted, (answered) => until(async () => answered() === calls));
      // Where nobody takes turns it is 1,800 and more.
    }, 1_000);
  });

  it("use no more memory when they are canceled while queued", async () => {
    await attacked.during(async () => {
      await flood(compressed, accepted, (answered) => until(async () => answered() > calls / 10));
    });
  });

  it("do not block callers that arrive later", async () => {
    const atOnce = async () => {};
    await attacked.during((others) => flood(compressed, atOnce, () => others.waitForResponses(20)));
  });
});

describe("thousands of simultaneous valid calls", () => {
  const byKeyRpc = "/latchkey.v1.ApplicationService/GetApplicationByKey";
  const ignored = Buffer.from([0x98, 0x06, 0x01]);

  it.each<[what: string, headers: OutgoingHttpHeaders, body: Uint8Array]>([
    ["over gRPC", {}, envelope(ignored)],
    ["over gRPC, compressed", { "grpc-encoding": "gzip" }, envelope(gzipSync(ignored), 1)],
  ])("are all answered: %s", async (_what, more, body) => {
    const sessions = openSessions(40);
    const headers = grpcHeaders(byKeyRpc, attacked.firstKey, more);
    const answers = await Promise.all(
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
    const codes = answers.map(({ headers, trailers }) => ({ ...headers, ...trailers }));
    expect(new Set(codes.map((all) => all["grpc-status"]))).toEqual(new Set(["0"]));
  });
});

describe("a connection that has received most of a body at once, after a pause", () => {
  it("stays open when the body is complete", async () => {
    const session = connect(attacked.url);
    const stream = session.request({
      ...{ ":method": "POST", ":path": "/applications", "svc-api-key": attacked.firstKey },
      ...asJson,
    });
    stream.resume();
    stream.write(" ");
    await waitForConnectionChecks(attacked.port);
    stream.end(" ".repeat(200_000));
    await once(stream, "close");
    await waitForConnectionChecks(attacked.port);
    expect(session.destroyed).toBe(false);
    session.destroy();
  });
});

describe("hundreds of check streams that send without a pause", () => {
  /** Sends many checks on a stream, and as many again whenever they are sent. */
  function ask(checks: Buffer) {
    const session = connect(attacked.url);
    session.on("error", () => {});
    const stream = session.request(
      grpcHeaders("/latchkey.v1.AccessService/StreamCheckAccess", attacked.firstKey),
    );
    stream.on("error", () => {});
    let received = 0;
    stream.on("data", ({ length }: Buffer) => {
      received += length;
    });
    const goOn = () => {
      if (!stream.closed) {
        stream.write(checks, () => setImmediate(goOn));
      }
    };
    goOn();
    return { received: () => received, end: () => session.destroy() };
  }

  it("all get responses, use little memory and delay no other caller", async () => {
    await attacked.during(async (others) => {
      const check = { key: attacked.firstKey, permission: "application:read" };
      const message = create(StreamCheckAccessRequestSchema, { correlationId: "a", check });
      const one = envelope(toBinary(StreamCheckAccessRequestSchema, message));
      const checks = Buffer.concat(Array.from({ length: 200 }, () => one));
      const streams = Array.from({ length: 200 }, () => ask(checks));
      await others.waitForResponses(40);
      await until(async () => streams.every(({ received }) => received() > 0));
      for (const { end } of streams) {
        end();
      }
      // Each of the streams may have a turn of some checks first.
    }, 4_000);
  });
});
