import { once } from "node:events";
import { connect, type OutgoingHttpHeaders } from "node:http2";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { StreamCheckAccessRequestSchema } from "../../gen/latchkey/v1/access_service_pb.js";
import { useAttacked } from "../support/attacked.js";
import { endHeaders, endStream, frame, frameType, request } from "../support/http2-frames.js";
import { type Frame, takeFrames } from "../support/http2-wire.js";
import { openRaw, openRawHttp2 } from "../support/raw-connection.js";
import { callRaw, envelope } from "../support/raw-grpc.js";
import { until } from "../support/until.js";

// What is sent here is little, and within every limit. It is prepared on many
// connections, so that all of it is to be served in one moment.
const attacked = useAttacked();

const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const asJson = { "content-type": "application/json" };

describe("bodies that all end in one moment keep nobody waiting", () => {
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
    const sessions = Array.from({ length: 10 }, () => connect(attacked.url));
    const all = { ":method": "POST", ":path": path, "svc-api-key": attacked.firstKey, ...asJson };
    const streams = sessions.flatMap((session) => {
      session.on("error", () => {});
      return Array.from({ length: 50 }, () => session.request(all));
    });
    const closed = streams.map((stream) => {
      stream.on("response", ({ ":status": status }) => statuses.push(status ?? 0));
      stream.on("error", () => {});
      stream.resume();
      stream.write(beginning);
      return new Promise((resolve) => stream.on("close", resolve));
    });
    await delay(1_000);
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
    const statuses = await attacked.during(() => endAtOnce(path));
    expect(statuses).toEqual(Array.from({ length: 500 }, () => 400));
  });
});

describe("streams on which nothing comes", () => {
  it("are no more than a thousand in all, though none has a key", async () => {
    const call = { ":method": "POST", ":path": "/grpc.health.v1.Health/Check", ...asJson };
    await attacked.during(async () => {
      const sessions = Array.from({ length: 20 }, () => connect(attacked.url));
      const streams = sessions.flatMap((session) => {
        session.on("error", () => {});
        return Array.from({ length: 120 }, () => session.request(call));
      });
      for (const stream of streams) {
        stream.on("error", () => {});
        stream.resume();
      }
      const open = () => streams.filter(({ closed }) => !closed).length;
      await until(async () => open() <= 1_000, 10_000);
      expect(open()).toBeGreaterThan(0);
      for (const session of sessions) {
        session.destroy();
      }
    });
  });
});

describe("calls that are made on hundreds of connections in one moment", () => {
  it("keep nobody waiting, though none has a key", async () => {
    const call =
      `POST ${createRpc} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n` +
      "content-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}";
    await attacked.during(async () => {
      const connections = Array.from({ length: 450 }, () => openRaw(attacked.port));
      await delay(1_000);
      for (const { write } of connections) {
        write(call.repeat(16));
      }
      await until(
        async () => connections.every(({ received }) => received().includes("HTTP/1.1 401")),
        10_000,
      );
      for (const { socket } of connections) {
        socket.destroy();
      }
    });
  });
});

describe("calls over HTTP/2 that are made on hundreds of connections in one moment", () => {
  const [connections, streams] = [900, 16];
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

  /** Makes the calls, some time after the connections, and answers how many were answered in time. */
  async function flood(calls: Buffer, pause: number, patience: number): Promise<number> {
    const opened = Array.from({ length: connections }, () => openRawHttp2(attacked.port));
    await delay(pause);
    for (const { write } of opened) {
      write(calls);
    }
    const countAnswers = () =>
      opened.reduce((sum, { received }) => sum + answersAmong(received()), 0);
    const deadline = performance.now() + patience;
    let answered = 0;
    while (answered < connections * streams && performance.now() < deadline) {
      await delay(500);
      answered = countAnswers();
    }
    for (const { socket } of opened) {
      socket.destroy();
    }
    return answered;
  }

  const answersAmong = (bytes: Buffer) => {
    const frames: Frame[] = [];
    takeFrames(bytes, frames);
    return frames.filter(({ type }) => type === "HEADERS").length;
  };

  it("are all answered, take little memory and keep nobody waiting, though none has a key", async () => {
    await attacked.during(async () => {
      for (let round = 0; round < 3; round++) {
        expect(await flood(plain, 1_000, 60_000)).toBe(connections * streams);
      }
    });
  });

  it("take no more where they are given up while they wait", async () => {
    await attacked.during(async () => {
      for (let round = 0; round < 3; round++) {
        await flood(compressed, 1_000, 1_500);
      }
    });
  });

  it("keep nobody out who comes behind them", async () => {
    await attacked.during(() => flood(compressed, 0, 4_000));
  });
});

describe("thousands of good calls that are made in one moment", () => {
  const byKeyRpc = "/latchkey.v1.ApplicationService/GetApplicationByKey";
  const ignored = Buffer.from([0x98, 0x06, 0x01]);

  it.each<[what: string, headers: OutgoingHttpHeaders, body: Uint8Array]>([
    ["over gRPC", {}, envelope(ignored)],
    ["over gRPC, compressed", { "grpc-encoding": "gzip" }, envelope(gzipSync(ignored), 1)],
  ])("are all answered: %s", async (_what, more, body) => {
    const sessions = Array.from({ length: 40 }, () => connect(attacked.url));
    const headers = { "svc-api-key": attacked.firstKey, ...more };
    const answers = await Promise.all(
      sessions.flatMap((session) =>
        Array.from({ length: 100 }, () => callRaw(attacked, byKeyRpc, { headers, body }, session)),
      ),
    );
    for (const session of sessions) {
      session.destroy();
    }
    expect(new Set(answers.map((answer) => answer.headers["grpc-status"]))).toEqual(new Set(["0"]));
  });
});

describe("a connection over which most of a body has come at once, after a while", () => {
  it("stays when the body is over", async () => {
    const session = connect(attacked.url);
    const stream = session.request({
      ...{ ":method": "POST", ":path": "/applications", "svc-api-key": attacked.firstKey },
      ...asJson,
    });
    stream.resume();
    stream.write(" ");
    // Connections are looked at once a second.
    await delay(1_200);
    stream.end(" ".repeat(200_000));
    await once(stream, "close");
    await delay(1_500);
    expect(session.destroyed).toBe(false);
    session.destroy();
  });
});

describe("streams of checks that are asked without a pause, hundreds of them", () => {
  const duration = 4_000;

  /** Sends many checks on a stream, and as many again whenever they are sent. */
  function ask(checks: Buffer, stopAt: number) {
    const session = connect(attacked.url);
    session.on("error", () => {});
    const stream = session.request({
      ...{ ":method": "POST", ":path": "/latchkey.v1.AccessService/StreamCheckAccess" },
      ...{ "svc-api-key": attacked.firstKey, te: "trailers", "content-type": "application/grpc" },
    });
    stream.on("error", () => {});
    let received = 0;
    stream.on("data", ({ length }: Buffer) => {
      received += length;
    });
    const goOn = () => {
      if (performance.now() < stopAt && !stream.closed) {
        stream.write(checks, () => setImmediate(goOn));
      }
    };
    goOn();
    return { received: () => received, end: () => session.destroy() };
  }

  it("are all answered, take little memory, and keep nobody waiting", async () => {
    await attacked.during(async () => {
      const check = { key: attacked.firstKey, permission: "application:read" };
      const message = create(StreamCheckAccessRequestSchema, { correlationId: "a", check });
      const one = envelope(toBinary(StreamCheckAccessRequestSchema, message));
      const checks = Buffer.concat(Array.from({ length: 200 }, () => one));
      const stopAt = performance.now() + duration;
      const streams = Array.from({ length: 200 }, () => ask(checks, stopAt));
      await delay(duration);
      await until(async () => streams.every(({ received }) => received() > 0), 30_000);
      for (const { end } of streams) {
        end();
      }
    });
  });
});
