import { setTimeout as delay } from "node:timers/promises";
import { describe, it } from "@jest/globals";
import {
  endHeaders,
  endStream,
  frame,
  frameType,
  request,
  settings,
} from "../support/http/http2-frames.js";
import { openRawHttp2, type RawConnection } from "../support/http/raw-connection.js";
import { type Others, useAttackedService } from "./support/attacked-service.js";

const attacked = useAttackedService({ HEADER_TIMEOUT: "1s" });

const attackers = 5;

/** Writes the same over and over, as fast as it is taken, until the server ends the connection or it is enough. */
async function flood(
  { socket, ended }: RawConnection,
  next: () => Buffer,
  isEnough: () => boolean,
): Promise<void> {
  while (!socket.destroyed && !isEnough()) {
    if (socket.write(next())) {
      await delay(0);
    } else {
      const drained = new Promise((resolve) => socket.once("drain", resolve));
      await Promise.race([drained, ended]);
    }
  }
}

/** Floods over a few connections at once, until the server has ended all of them or it is enough. */
function attack(
  createNext: () => () => Buffer,
  start: Uint8Array = new Uint8Array(),
  enough: (others: Others) => Promise<void> = () => new Promise(() => {}),
): Promise<void> {
  return attacked.during(async (others) => {
    const connections = Array.from({ length: attackers }, () => openRawHttp2(attacked.port));
    let isEnough = false;
    const floods = connections.map((connection) => {
      connection.socket.resume();
      connection.write(start);
      return flood(connection, createNext(), () => isEnough);
    });
    await Promise.race([Promise.all(floods), enough(others)]);
    isEnough = true;
    for (const { socket } of connections) {
      socket.destroy();
    }
    await Promise.all(floods);
  });
}

/** So many of the same. */
function many(bytes: Buffer, count: number): Buffer {
  return Buffer.concat(Array.from({ length: count }, () => bytes));
}

const open = (stream: number, path = "/applications/key") =>
  frame(frameType.headers, endHeaders, stream, request(path, {}, "POST"));

// Each of these goes on until the service has cut off all of its connections.
describe("disconnects an HTTP/2 client, and serves others, when it", () => {
  it("opens streams and resets them at once", async () => {
    await attack(() => {
      let stream = 1;
      return () => {
        const frames: Buffer[] = [];
        for (let count = 0; count < 200; count++) {
          const code = Buffer.from([0, 0, 0, count % 14]);
          frames.push(open(stream), frame(frameType.reset, 0, stream, code));
          stream += 2;
        }
        return Buffer.concat(frames);
      };
    });
  });

  it.each<[what: string, bytes: Buffer]>([
    ["pings without end", frame(frameType.ping, 0, 0, Buffer.alloc(8))],
    ["changes its settings without end", settings([3, 100])],
    ["sends empty settings without end", settings()],
  ])("%s", async (_what, bytes) => {
    const block = many(bytes, 1_000);
    await attack(() => () => block);
  });

  it.each<[what: string, start: Buffer, bytes: Buffer]>([
    [
      "never comes to the end of its headers",
      frame(frameType.headers, 0, 1, request("/")),
      frame(frameType.continuation, 0, 1, Buffer.from([0, 1, 97, 1, 97])),
    ],
    ["sends a body in frames of nothing", open(1), frame(frameType.data, 0, 1)],
    ["sends frames that are none", Buffer.alloc(0), Buffer.alloc(64, 0xff)],
    [
      "sends data to streams that there are not",
      Buffer.alloc(0),
      frame(frameType.data, 0, 99, Buffer.alloc(10)),
    ],
    ["opens no window by nothing", open(1), frame(frameType.windowUpdate, 0, 0, Buffer.alloc(4))],
  ])("%s", async (_what, start, bytes) => {
    const block = many(bytes, 1_000);
    await attack(() => () => block, start);
  });

  it("sends headers that expand when decoded", async () => {
    // One large header is put into the table, and then named by a byte each time.
    const large = Buffer.concat([
      Buffer.from([0x40, 1, 97, 0x7f, 0xa1, 0x1e]),
      Buffer.alloc(127 + 0x21 + 0x1e * 128, 98),
    ]);
    await attack(() => {
      let stream = -1;
      return () => {
        stream += 2;
        const block = Buffer.concat([request("/"), large, Buffer.alloc(8_000, 0xbe)]);
        return frame(frameType.headers, endHeaders | endStream, stream, block);
      };
    });
  });
});

describe("serves others while an HTTP/2 client", () => {
  it.each<[what: string, bytes: Buffer]>([
    ["sends priorities without end", frame(frameType.priority, 0, 1, Buffer.from([0, 0, 0, 3, 9]))],
    [
      "opens its window without end",
      frame(frameType.windowUpdate, 0, 1, Buffer.from([0, 0, 0, 1])),
    ],
    ["sends frames of a type that nobody knows", frame(0xfa, 0, 0, Buffer.alloc(4))],
  ])("%s", async (_what, bytes) => {
    const block = many(bytes, 1_000);
    await attack(
      () => () => block,
      open(1),
      (others) => others.waitForResponses(40),
    );
  });
});
