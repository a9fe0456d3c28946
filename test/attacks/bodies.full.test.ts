import { once } from "node:events";
import { connect as connectHttp2, type OutgoingHttpHeaders } from "node:http2";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { describe, expect, it } from "@jest/globals";
import { endHeaders, endStream, frame, frameType, request } from "../support/http/http2-frames.js";
import { openRaw, openRawHttp2 } from "../support/http/raw-connection.js";
import { callRaw, envelope } from "../support/http/raw-grpc.js";
import { scrape } from "../support/service/exposition.js";
import { until } from "../support/until.js";
import { noTimeouts, useAttackedService } from "./support/attacked-service.js";

const attacked = useAttackedService(noTimeouts);

const megabyte = 1024 * 1024;
const block = Buffer.alloc(megabyte, " ");
const whole = 100 * megabyte;
const mostSent = 24 * megabyte;
const attackers = 10;

const createRpc = "/latchkey.v1.ApplicationService/CreateApplication";
const checkRpc = "/latchkey.v1.AccessService/StreamCheckAccess";

/** Sends a body without end over HTTP/1.1, and answers how much of it left this process. */
async function pourHttp1(headers: readonly string[], isChunked: boolean): Promise<number> {
  const { socket, write, ended } = openRaw(attacked.port);
  const lines = ["POST /applications HTTP/1.1", "host: a", "content-type: application/json"];
  write(`${[...lines, ...headers].join("\r\n")}\r\n\r\n`);
  let sent = 0;
  const push = (error?: Error | null) => {
    if (sent < whole && !error) {
      sent += block.length;
      socket.write(isChunked ? `${block.length.toString(16)}\r\n${block}\r\n` : block, push);
    }
  };
  push();
  await ended;
  return sent;
}

/** Sends a body without end over HTTP/2. */
function pourHttp2(path: string, headers: OutgoingHttpHeaders, start?: Buffer): Promise<number> {
  const session = connectHttp2(attacked.url);
  session.on("error", () => {});
  const stream = session.request({ ":method": "POST", ":path": path, te: "trailers", ...headers });
  stream.on("error", () => {});
  stream.resume();
  let sent = 0;
  const push = (error?: Error | null) => {
    if (sent < whole && !error) {
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

describe("closes the connection of a 100 MB body before 24 MiB are sent", () => {
  const withKey = () => ({ "svc-api-key": attacked.firstKey });

  it.each<[what: string, pour: () => Promise<number>]>([
    [
      "in chunks",
      () => pourHttp1([`svc-api-key: ${attacked.firstKey}`, "transfer-encoding: chunked"], true),
    ],
    [
      "with its length",
      () => pourHttp1([`svc-api-key: ${attacked.firstKey}`, `content-length: ${whole}`], false),
    ],
    ["without a key", () => pourHttp1([`content-length: ${whole}`], false)],
    [
      "by one that does not wait to be asked, as it said",
      () =>
        pourHttp1(
          [`svc-api-key: ${attacked.firstKey}`, `content-length: ${whole}`, "expect: 100-continue"],
          false,
        ),
    ],
    [
      "over HTTP/2",
      () => pourHttp2("/applications", { "content-type": "application/json", ...withKey() }),
    ],
    ["over HTTP/2, without a key", () => pourHttp2("/applications", {})],
    [
      "over gRPC",
      () =>
        pourHttp2(
          createRpc,
          { "content-type": "application/grpc", ...withKey() },
          envelope("", 0, whole),
        ),
    ],
    [
      "over gRPC, compressed",
      () =>
        pourHttp2(
          createRpc,
          { "content-type": "application/grpc", "grpc-encoding": "gzip", ...withKey() },
          envelope("", 1, whole),
        ),
    ],
    [
      "as a message of a stream of gRPC",
      () =>
        pourHttp2(
          checkRpc,
          { "content-type": "application/grpc", ...withKey() },
          envelope("", 0, whole),
        ),
    ],
    [
      "as a message of a stream of Connect",
      () =>
        pourHttp2(
          checkRpc,
          { "content-type": "application/connect+proto", ...withKey() },
          envelope("", 0, whole),
        ),
    ],
  ])("%s", async (_what, pour) => {
    const sent = await attacked.during(() => Promise.all(Array.from({ length: attackers }, pour)));
    expect(Math.max(...sent)).toBeLessThan(mostSent);
  });
});

describe("a body in chunks of one byte", () => {
  const parts = "1\r\n \r\n".repeat(2_000);

  /** Sends such a body for as long as it is taken. */
  async function pourParts(path: string, headers: string): Promise<string> {
    const { socket, write, ended, received } = openRaw(attacked.port);
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

  const keyLine = () => `svc-api-key: ${attacked.firstKey}\r\n`;

  it.each<[what: string, path: string, headers: () => string, answer: string]>([
    ["without a key", "/applications", () => "", "HTTP/1.1 401"],
    ["with one", "/applications", keyLine, "HTTP/1.1 400"],
    [
      ...(["compressed", createRpc] as const),
      () => `${keyLine()}content-encoding: gzip\r\n`,
      "HTTP/1.1 400",
    ],
  ])("is cut off, and keeps nobody waiting: %s", async (_what, path, headers, answer) => {
    const answers = await attacked.during(() =>
      Promise.all(Array.from({ length: attackers }, () => pourParts(path, headers()))),
    );
    // What the sender is still writing may cost it the answer.
    expect(answers.filter((text) => text !== answer && text !== "")).toEqual([]);
  });
});

describe("a decompression bomb", () => {
  const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } };

  it.each<[encoding: string, bomb: () => Uint8Array]>([
    ["gzip", () => gzipSync(Buffer.alloc(256 * megabyte))],
    ["br", () => brotliCompressSync(Buffer.alloc(256 * megabyte), quality)],
  ])("keeps nobody waiting: %s", async (encoding, bomb) => {
    const bytes = bomb();
    await attacked.during(async () => {
      const all = { "svc-api-key": attacked.firstKey };
      for (let round = 0; round < 5; round++) {
        await Promise.all(
          ["application/grpc", "application/grpc-web+proto"].map((type) =>
            callRaw(attacked, createRpc, {
              headers: { ...all, "content-type": type, "grpc-encoding": encoding },
              body: envelope(bytes, 1),
            }),
          ),
        );
        await callRaw(attacked, createRpc, {
          headers: { ...all, "content-type": "application/json", "content-encoding": encoding },
          body: bytes,
        });
      }
    });
  });
});

describe("disconnects a caller that does not read its responses", () => {
  const timeout = 1_000;
  const hasty = useAttackedService({ BODY_TIMEOUT: "1s", HEADER_TIMEOUT: "1s" });

  /**
   * The connection that the good client keeps, and the one that asks for
   * metrics. The good client opens others for the moment of a call.
   */
  const others = 2;

  const areAllGone = async () => (await scrape(hasty)).sum("latchkey_connections_open") <= others;

  it("over HTTP/1.1", async () => {
    await hasty.during(async () => {
      const connections = Array.from({ length: attackers }, () => openRaw(hasty.port));
      for (const { socket, write } of connections) {
        socket.pause();
        write("GET /openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(200));
      }
      await Promise.all(connections.map(({ socket }) => once(socket, "connect")));
      // What is asked now is answered when all of them are accepted.
      await until(areAllGone);
      for (const { socket, ended } of connections) {
        socket.resume();
        await ended;
      }
    });
  });

  it("over HTTP/2, with a closed flow-control window", async () => {
    await hasty.during(async () => {
      // A window of nothing, for every stream.
      const connections = Array.from({ length: attackers }, () => openRawHttp2(hasty.port, [4, 0]));
      for (const { write } of connections) {
        for (let stream = 1; stream < 250; stream += 2) {
          write(frame(frameType.headers, endHeaders | endStream, stream, request("/openapi.json")));
        }
      }
      // That it is there is not enough.
      const ping = frame(frameType.ping, 0, 0, Buffer.alloc(8));
      const pinging = setInterval(() => connections.map(({ write }) => write(ping)), 300);
      const times = await Promise.all(connections.map(({ ended }) => ended));
      clearInterval(pinging);
      expect(Math.min(...times)).toBeGreaterThan(timeout);
    });
  });
});
