import { once } from "node:events";
import { connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { rpcPath } from "../support/api/rpc-path.js";
import { endHeaders, endStream, frame, frameType, request } from "../support/http/http2-frames.js";
import { onFrames, openRaw, openRawHttp2 } from "../support/http/raw-connection.js";
import { callRaw, envelope } from "../support/http/raw-grpc.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";

const service = useAttackedService(noTimeouts);

const megabyte = 1024 * 1024;
const block = Buffer.alloc(megabyte, " ");
const bodySize = 100 * megabyte;
const maxSent = 24 * megabyte;
const attackers = 10;

const createApplicationPath = rpcPath(ApplicationService.method.createApplication);
const streamCheckAccessPath = rpcPath(AccessService.method.streamCheckAccess);

/** Sends a 100 MB body over HTTP/1.1 and returns how many bytes were written. */
async function sendBodyHttp1(headers: readonly string[], isChunked: boolean): Promise<number> {
  const { socket, write, ended } = openRaw(service.port);
  const lines = ["POST /applications HTTP/1.1", "host: a", "content-type: application/json"];
  write(`${[...lines, ...headers].join("\r\n")}\r\n\r\n`);
  let sent = 0;
  const push = (error?: Error | null) => {
    if (sent < bodySize && !error) {
      sent += block.length;
      socket.write(isChunked ? `${block.length.toString(16)}\r\n${block}\r\n` : block, push);
    }
  };
  push();
  await ended;
  return sent;
}

/** Sends a 100 MB body over HTTP/2 and returns how many bytes were written. */
function sendBodyHttp2(
  path: string,
  headers: OutgoingHttpHeaders,
  start?: Buffer,
): Promise<number> {
  const session = connectHttp2(service.url);
  session.on("error", () => {});
  const stream = session.request({ ":method": "POST", ":path": path, te: "trailers", ...headers });
  stream.on("error", () => {});
  stream.resume();
  let sent = 0;
  const push = (error?: Error | null) => {
    if (sent < bodySize && !error) {
      sent += block.length;
      stream.write(block, push);
    }
  };
  if (start) {
    stream.write(start);
  }
  push();
  return new Promise((resolve) => {
    stream.on("close", () => {
      session.destroy();
      resolve(sent);
    });
  });
}

describe("a body of 100 MB", () => {
  const withKey = () => ({ "svc-api-key": service.firstKey });

  it.each<[what: string, sendBody: () => Promise<number>]>([
    [
      "chunked",
      () => sendBodyHttp1([`svc-api-key: ${service.firstKey}`, "transfer-encoding: chunked"], true),
    ],
    [
      "with content-length",
      () =>
        sendBodyHttp1([`svc-api-key: ${service.firstKey}`, `content-length: ${bodySize}`], false),
    ],
    ["without a key", () => sendBodyHttp1([`content-length: ${bodySize}`], false)],
    [
      "with expect: 100-continue, without waiting for it",
      () =>
        sendBodyHttp1(
          [
            `svc-api-key: ${service.firstKey}`,
            `content-length: ${bodySize}`,
            "expect: 100-continue",
          ],
          false,
        ),
    ],
    [
      "over HTTP/2",
      () => sendBodyHttp2("/applications", { "content-type": "application/json", ...withKey() }),
    ],
    ["over HTTP/2, without a key", () => sendBodyHttp2("/applications", {})],
    [
      "over gRPC",
      () =>
        sendBodyHttp2(
          createApplicationPath,
          { "content-type": "application/grpc", ...withKey() },
          envelope("", 0, bodySize),
        ),
    ],
    [
      "over gRPC, compressed",
      () =>
        sendBodyHttp2(
          createApplicationPath,
          { "content-type": "application/grpc", "grpc-encoding": "gzip", ...withKey() },
          envelope("", 1, bodySize),
        ),
    ],
    [
      "as a message of a gRPC stream",
      () =>
        sendBodyHttp2(
          streamCheckAccessPath,
          { "content-type": "application/grpc", ...withKey() },
          envelope("", 0, bodySize),
        ),
    ],
    [
      "as a message of a Connect stream",
      () =>
        sendBodyHttp2(
          streamCheckAccessPath,
          { "content-type": "application/connect+proto", ...withKey() },
          envelope("", 0, bodySize),
        ),
    ],
  ])("causes the connection to close before 24 MiB are sent: %s", async (_what, sendBody) => {
    const sent = await service.runAttack(() =>
      Promise.all(Array.from({ length: attackers }, sendBody)),
    );
    expect(Math.max(...sent)).toBeLessThan(maxSent);
  });
});

describe("a body in chunks of one byte", () => {
  const parts = "1\r\n \r\n".repeat(2_000);

  /** Sends chunks until the connection closes. Returns the status line. */
  async function sendChunks(path: string, headers: string): Promise<string> {
    const { socket, write, ended, received } = openRaw(service.port);
    write(
      `POST ${path} HTTP/1.1\r\nhost: a\r\n${headers}` +
        "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
    );
    const push = (error?: Error | null) => {
      if (!error && !socket.destroyed) {
        socket.write(parts, push);
      }
    };
    push();
    await ended;
    return received().toString().slice(0, 12);
  }

  const keyLine = () => `svc-api-key: ${service.firstKey}\r\n`;

  it.each<[what: string, path: string, headers: () => string, statusLine: string]>([
    ["without a key", "/applications", () => "", "HTTP/1.1 401"],
    ["with a key", "/applications", keyLine, "HTTP/1.1 400"],
    [
      ...(["compressed", createApplicationPath] as const),
      () => `${keyLine()}content-encoding: gzip\r\n`,
      "HTTP/1.1 400",
    ],
  ])(
    "is disconnected and does not delay other clients: %s",
    async (_what, path, headers, statusLine) => {
      const statusLines = await service.runAttack(() =>
        Promise.all(Array.from({ length: attackers }, () => sendChunks(path, headers()))),
      );
      // A client that is still writing may lose the response.
      expect(statusLines.filter((text) => text !== statusLine && text !== "")).toEqual([]);
    },
  );
});

describe("a decompression bomb", () => {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

  it.each<[encoding: string, bomb: () => Uint8Array]>([
    ["gzip", () => gzipSync(Buffer.alloc(256 * megabyte))],
    ["br", () => brotliCompressSync(Buffer.alloc(256 * megabyte), quality)],
  ])("does not delay other clients: %s", async (encoding, bomb) => {
    const bytes = bomb();
    await service.runAttack(async () => {
      const withKey = { "svc-api-key": service.firstKey };
      for (let round = 0; round < 5; round++) {
        await Promise.all(
          ["application/grpc", "application/grpc-web+proto"].map((type) =>
            callRaw(service, createApplicationPath, {
              headers: { ...withKey, "content-type": type, "grpc-encoding": encoding },
              body: envelope(bytes, 1),
            }),
          ),
        );
        await callRaw(service, createApplicationPath, {
          headers: { ...withKey, "content-type": "application/json", "content-encoding": encoding },
          body: bytes,
        });
      }
    });
  });
});

describe("a client that does not read its responses", () => {
  const shortTimeoutService = useAttackedService({ BODY_TIMEOUT: "1s", HEADER_TIMEOUT: "1s" });

  /**
   * The persistent connection of the legitimate client and the connection of the scrape. Other
   * connections of the legitimate client are short.
   */
  const otherConnections = 2;

  const areAllClosed = async () =>
    (await scrape(shortTimeoutService)).sum("latchkey_connections_open") <= otherConnections;

  it("is disconnected over HTTP/1.1", async () => {
    await shortTimeoutService.runAttack(async () => {
      const connections = Array.from({ length: attackers }, () =>
        openRaw(shortTimeoutService.port),
      );
      for (const { socket, write } of connections) {
        socket.pause();
        write("GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(200));
      }
      await Promise.all(connections.map(({ socket }) => once(socket, "connect")));
      // The server accepts all of them before it responds to the scrape.
      await until(areAllClosed);
      for (const { socket, ended } of connections) {
        socket.resume();
        await ended;
      }
    });
  });

  it("loses its calls over HTTP/2, with a closed flow-control window", async () => {
    await shortTimeoutService.runAttack(async () => {
      // An initial window size of 0.
      const connections = Array.from({ length: attackers }, () =>
        openRawHttp2(shortTimeoutService.port, [4, 0]),
      );
      const calls = 125;
      const resets = connections.map((connection) => {
        let count = 0;
        onFrames(connection, (frames) => {
          count += frames.filter(({ type }) => type === "RST_STREAM").length;
        });
        return () => count;
      });
      for (const { write } of connections) {
        for (let stream = 1; stream < 2 * calls; stream += 2) {
          write(frame(frameType.headers, endHeaders | endStream, stream, request("/openapi.json")));
        }
      }
      // Pings must not keep the calls open.
      const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
      const pinging = setInterval(() => connections.map(({ write }) => write(ping)), 300);
      await until(async () => resets.every((count) => count() === calls));
      clearInterval(pinging);
      for (const { socket } of connections) {
        socket.destroy();
      }
    });
  });
});
