import { describe, expect, it } from "@jest/globals";
import { readSettings } from "../../src/config/settings.js";
import { endHeaders, frame, frameType, request } from "../support/http/http2-frames.js";
import { openRaw, openRawHttp2 } from "../support/http/raw-connection.js";
import { useAttackedService } from "./support/attacked-service.js";
import { sendSlowBodyUntilResponse, slowHeaders } from "./support/slow-clients.js";

// One attack of each kind. The full suite runs all of them.
const timeout = 1_000;
const service = useAttackedService({
  HEADER_TIMEOUT: "1s",
  IDLE_TIMEOUT: "1s",
  BODY_TIMEOUT: "1s",
  REQUEST_TIMEOUT: "24h",
});

describe("the default limits", () => {
  const { limits } = readSettings({});

  it("limit every resource", () => {
    expect(limits).toEqual({
      headerSize: 16_384,
      headerCount: 100,
      bodyBudget: 33_554_432,
      responseBudget: 67_108_864,
      urlSize: 8_192,
      jsonDepth: 32,
      listItems: 10_000,
      headerTimeout: 7_000,
      bodyTimeout: 25_000,
      idleTimeout: 65_000,
      connections: 10_000,
      connectionsPerAddress: 1_000,
      http2Streams: 128,
      calls: 10_000,
      streams: 1_000,
    });
  });

  it("allow less than 10 s for headers and less than 30 s for bodies", () => {
    expect(limits.headerTimeout + 1_000).toBeLessThan(10_000);
    expect(limits.bodyTimeout + 1_000).toBeLessThan(30_000);
  });
});

describe("a service under attack", () => {
  it("disconnects slow headers and bodies after their timeout and not before", async () => {
    const start = slowHeaders["byte by byte"] as (typeof slowHeaders)[string];
    const [headers, body] = await service.runAttack(async () =>
      Promise.all([
        (await start(service, service)).disconnected,
        sendSlowBodyUntilResponse(service),
      ]),
    );
    expect(headers.after).toBeGreaterThan(timeout);
    expect(body.after).toBeGreaterThan(timeout);
    expect(body.status).toBe("408");
  });

  it("disconnects an oversized body before 24 MiB of it are sent", async () => {
    const megabyte = 1024 * 1024;
    const block = Buffer.alloc(megabyte, " ");
    const [sent, statusLine] = await service.runAttack(async () => {
      const { socket, write, ended, received } = openRaw(service.port);
      write(
        `POST /applications HTTP/1.1\r\nhost: a\r\nsvc-api-key: ${service.firstKey}\r\n` +
          "content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
      );
      let sent = 0;
      const push = (error?: Error | null) => {
        if (!error && sent < 100 * megabyte) {
          sent += megabyte;
          socket.write(`${megabyte.toString(16)}\r\n${block}\r\n`, push);
        }
      };
      push();
      await ended;
      return [sent, received().toString("latin1", 0, 12)];
    });
    expect(sent).toBeLessThan(24 * megabyte);
    // The client loses the response if it is still writing.
    expect(["", "HTTP/1.1 413"]).toContain(statusLine);
  });

  it("disconnects an HTTP/2 client that opens streams and resets them immediately", async () => {
    await service.runAttack(async () => {
      const { socket, ended } = openRawHttp2(service.port);
      const code = Buffer.from([0, 0, 0, 8]);
      let stream = 1;
      const push = (error?: Error | null) => {
        const frames: Buffer[] = [];
        for (let count = 0; count < 200; count++, stream += 2) {
          const fields = request("/applications/key", {}, "POST");
          frames.push(frame(frameType.headers, endHeaders, stream, fields));
          frames.push(frame(frameType.reset, 0, stream, code));
        }
        if (!error && !socket.destroyed) {
          socket.write(Buffer.concat(frames), push);
        }
      };
      push();
      await ended;
    });
  });
});
