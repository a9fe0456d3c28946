import { once } from "node:events";
import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { detectProtocol } from "../../../src/transport/listener/node-server.js";
import { runThenBlock } from "../../support/event-loop.js";
import { openRaw } from "../../support/http/raw-connection.js";

const timeoutMs = 200;

const http1 = createHttp1Server((_request, response) => response.end("served"));
detectProtocol(http1, createHttp2Server(), timeoutMs);
let port: number;

beforeEach(async () => {
  await once(http1.listen(0, "127.0.0.1"), "listening");
  ({ port } = http1.address() as AddressInfo);
});

afterEach(() => new Promise((resolve) => http1.close(resolve)));

describe("a connection before protocol detection", () => {
  it.each(["", "P", "PR"])("is closed if it sends only %j", async (start) => {
    const connection = openRaw(port);
    connection.write(start);
    await connection.ended;
    expect(connection.received()).toHaveLength(0);
  });

  it("is served if data arrived in time, even if it is read late", async () => {
    const request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let response = "";
    // A machine that was too slow to send data in time has to retry.
    for (let isInTime = false; !isInTime; ) {
      const startedAt = performance.now();
      const accepted = once(http1, "connection");
      const connection = openRaw(port);
      await accepted;
      await runThenBlock(() => {
        connection.write(request);
        isInTime = performance.now() - startedAt < timeoutMs - 10;
      }, 2 * timeoutMs);
      await connection.ended;
      response = connection.received().toString();
    }
    expect(response).toMatch(/^HTTP\/1.1 200 /);
  });
});
