import { connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { describe, expect, it } from "@jest/globals";
import { readSettings } from "../../src/config.js";
import { useAttacked } from "../support/attacked.js";
import { frame, frameType, request } from "../support/http2-frames.js";
import { openRaw, openRawHttp2, type RawConnection } from "../support/raw-connection.js";

const attacked = useAttacked({ HEADER_TIMEOUT: "1s", BODY_TIMEOUT: "2s", REQUEST_TIMEOUT: "1h" });

const attackers = 20;

/** How long after its time a caller may be cut off: it is looked at once a second, on a machine that may stand still. */
const leeway = 6_000;

const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const checkRpc = "/latchkey.v1.AccessService/StreamCheckAccess";
const watchRpc = "/latchkey.v1.EventService/WatchEvents";

describe("by default", () => {
  it("headers may take less than 10 s, and bodies less than 30 s", () => {
    const { headerTimeout, bodyTimeout } = readSettings({}).limits;
    expect(headerTimeout + 1_000).toBeLessThan(10_000);
    expect(bodyTimeout + 1_000).toBeLessThan(30_000);
  });
});

/** Goes on to write something small, for as long as it is let. */
function drip(connection: RawConnection, next: () => string | Buffer): Promise<number> {
  const timer = setInterval(() => connection.write(next()), 200);
  return connection.ended.finally(() => clearInterval(timer));
}

describe("headers that come slowly are cut off", () => {
  it.each<[what: string, open: () => RawConnection, next: () => string | Buffer]>([
    ["where nothing comes at all", () => openRaw(attacked.port), () => ""],
    ["letter by letter", () => openRaw(attacked.port), () => "G"],
    [
      "header by header",
      () => {
        const connection = openRaw(attacked.port);
        connection.write("GET / HTTP/1.1\r\n");
        return connection;
      },
      () => "x-a: b\r\n",
    ],
    [
      "over HTTP/2",
      () => {
        const connection = openRawHttp2(attacked.port);
        connection.write(frame(frameType.headers, 0, 1, request("/")));
        return connection;
      },
      () => frame(frameType.ping, 0, 0, Buffer.alloc(1)),
    ],
  ])("%s", async (_what, open, next) => {
    await attacked.during(async () => {
      expect(await drip(open(), next)).toBeLessThan(1_000 + leeway);
    });
  });
});

describe("a body that comes slowly is cut off", () => {
  it("over HTTP/1.1", async () => {
    await attacked.during(async () => {
      const connections = Array.from({ length: attackers }, () => openRaw(attacked.port));
      const times = connections.map((connection) => {
        connection.write(
          `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${attacked.firstKey}\r\n` +
            "content-type: application/json\r\ncontent-length: 1000\r\n\r\n",
        );
        return drip(connection, () => " ");
      });
      expect(Math.max(...(await Promise.all(times)))).toBeLessThan(2_000 + leeway);
      for (const { received } of connections) {
        expect(received().toString()).toContain("HTTP/1.1 408");
      }
    });
  });

  /** How long a stream lives whose body comes byte by byte. */
  function dripHttp2(path: string, headers: OutgoingHttpHeaders): Promise<number> {
    const session = connectHttp2(attacked.url);
    const started = performance.now();
    const stream = session.request({
      ...{ ":method": "POST", ":path": path, "svc-api-key": attacked.firstKey, te: "trailers" },
      ...headers,
    });
    const timer = setInterval(() => stream.write(Buffer.alloc(1)), 200);
    stream.on("error", () => {});
    stream.resume();
    return new Promise((resolve) => {
      stream.on("close", () => {
        clearInterval(timer);
        session.destroy();
        resolve(performance.now() - started);
      });
      // The prefix of a message that is long.
      stream.write(Buffer.from([0, 0, 0, 1]));
    });
  }

  const slow: readonly [what: string, path: string, headers: OutgoingHttpHeaders][] = [
    ["REST", "/applications", { "content-type": "application/json" }],
    ["Connect", createRpc, { "content-type": "application/json" }],
    [
      "Connect, compressed",
      createRpc,
      { "content-type": "application/json", "content-encoding": "gzip" },
    ],
    ["gRPC", createRpc, { "content-type": "application/grpc" }],
    [
      "gRPC, compressed",
      createRpc,
      { "content-type": "application/grpc", "grpc-encoding": "gzip" },
    ],
    ["gRPC in a stream of answers", watchRpc, { "content-type": "application/grpc" }],
    ["Connect in a stream of answers", watchRpc, { "content-type": "application/connect+proto" }],
    ["gRPC in a stream of messages", checkRpc, { "content-type": "application/grpc" }],
    [
      "gRPC in a stream of messages, compressed",
      checkRpc,
      { "content-type": "application/grpc", "grpc-encoding": "gzip" },
    ],
    ["Connect in a stream of messages", checkRpc, { "content-type": "application/connect+proto" }],
  ];

  it("over HTTP/2, whatever it is the body of", async () => {
    const late = await attacked.during(async () => {
      const times = slow.map(async ([what, path, headers]) => {
        const all = Array.from({ length: attackers }, () => dripHttp2(path, headers));
        return { what, time: Math.max(...(await Promise.all(all))) };
      });
      return (await Promise.all(times)).filter(({ time }) => time >= 2_000 + leeway);
    });
    expect(late).toEqual([]);
  });
});

describe("a stream whose messages are whole", () => {
  it("may be quiet for longer than a body may take", async () => {
    const session = connectHttp2(attacked.url);
    const stream = session.request({
      ...{ ":method": "POST", ":path": checkRpc, "svc-api-key": attacked.firstKey, te: "trailers" },
      "content-type": "application/grpc",
    });
    stream.on("error", () => {});
    stream.resume();
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    expect(stream.closed).toBe(false);
    session.destroy();
  });
});
