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
import { useAttackedService } from "./support/attacked-service.js";
import type { LegitimateClient } from "./support/legitimate-client.js";

const service = useAttackedService({ HEADER_TIMEOUT: "1s", IDLE_TIMEOUT: "1s" });

const attackers = 5;

/** Writes as fast as possible until the connection closes or `shouldStop` returns true. */
async function flood(
  { socket, ended }: RawConnection,
  next: () => Buffer,
  shouldStop: () => boolean,
): Promise<void> {
  while (!socket.destroyed && !shouldStop()) {
    if (socket.write(next())) {
      await delay(0);
    } else {
      const drained = new Promise((resolve) => socket.once("drain", resolve));
      await Promise.race([drained, ended]);
    }
  }
}

/** Floods several connections until the server has closed all of them or `waitForEnd` resolves. */
function attack(
  createNext: () => () => Buffer,
  start: Uint8Array = new Uint8Array(),
  waitForEnd: (client: LegitimateClient) => Promise<void> = () => new Promise(() => {}),
): Promise<void> {
  return service.runAttack(async (client) => {
    const connections = Array.from({ length: attackers }, () => openRawHttp2(service.port));
    let shouldStop = false;
    const floods = connections.map((connection) => {
      connection.socket.resume();
      connection.write(start);
      return flood(connection, createNext(), () => shouldStop);
    });
    await Promise.race([Promise.all(floods), waitForEnd(client)]);
    shouldStop = true;
    for (const { socket } of connections) {
      socket.destroy();
    }
    await Promise.all(floods);
  });
}

function repeat(bytes: Buffer, count: number): Buffer {
  return Buffer.concat(Array.from({ length: count }, () => bytes));
}

const open = (stream: number, path = "/applications/key") =>
  frame(frameType.headers, endHeaders, stream, request(path, {}, "POST"));

// Each attack continues until the service has closed all its connections.
describe("a service under an HTTP/2 flood", () => {
  it("serves other clients and disconnects one that opens streams and resets them immediately", async () => {
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
    ["sends endless pings", frame(frameType.ping, 0, 0, Buffer.alloc(8))],
    ["sends endless settings", settings([3, 100])],
    ["sends endless empty settings", settings()],
  ])("serves other clients and disconnects one that %s", async (_what, bytes) => {
    const block = repeat(bytes, 1_000);
    await attack(() => () => block);
  });

  it.each<[what: string, start: Buffer, bytes: Buffer]>([
    [
      "sends endless CONTINUATION frames",
      frame(frameType.headers, 0, 1, request("/")),
      frame(frameType.continuation, 0, 1, Buffer.from([0, 1, 97, 1, 97])),
    ],
    ["sends endless empty DATA frames", open(1), frame(frameType.data, 0, 1)],
    ["sends invalid frames", Buffer.alloc(0), Buffer.alloc(64, 0xff)],
    [
      "sends data on streams that are not open",
      Buffer.alloc(0),
      frame(frameType.data, 0, 99, Buffer.alloc(10)),
    ],
    ["sends window updates of 0", open(1), frame(frameType.windowUpdate, 0, 0, Buffer.alloc(4))],
  ])("serves other clients and disconnects one that %s", async (_what, start, bytes) => {
    const block = repeat(bytes, 1_000);
    await attack(() => () => block, start);
  });

  it("serves other clients and disconnects one that sends headers that expand when decoded", async () => {
    // Adds one large header to the dynamic table, then references it with one byte each.
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

describe("a service under a harmless HTTP/2 flood", () => {
  it.each<[what: string, bytes: Buffer]>([
    [
      "sends endless PRIORITY frames",
      frame(frameType.priority, 0, 1, Buffer.from([0, 0, 0, 3, 9])),
    ],
    [
      "sends endless window updates",
      frame(frameType.windowUpdate, 0, 1, Buffer.from([0, 0, 0, 1])),
    ],
    ["sends endless frames of an unknown type", frame(0xfa, 0, 0, Buffer.alloc(4))],
  ])("serves other clients while one %s", async (_what, bytes) => {
    const block = repeat(bytes, 1_000);
    await attack(
      () => () => block,
      open(1),
      (client) => client.waitForResponses(40),
    );
  });
});
