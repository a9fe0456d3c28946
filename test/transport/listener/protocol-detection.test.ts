import { once } from "node:events";
import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { detectProtocol } from "../../../src/transport/listener/node-server.js";
import { openRaw } from "../../support/raw-connection.js";
import { thenStandStill } from "../../support/then-stand-still.js";

const patience = 200;

const http1 = createHttp1Server((_request, response) => response.end("served"));
detectProtocol(http1, createHttp2Server(), patience);
let port: number;

beforeEach(async () => {
  await once(http1.listen(0, "127.0.0.1"), "listening");
  ({ port } = http1.address() as AddressInfo);
});

afterEach(() => new Promise((resolve) => http1.close(resolve)));

describe("a connection that is not known yet to be of HTTP/1.1 or of HTTP/2", () => {
  it.each(["", "P", "PR"])("is ended where no more comes than %j", async (start) => {
    const connection = openRaw(port);
    connection.write(start);
    await connection.ended;
    expect(connection.received()).toHaveLength(0);
  });

  it("is served where something came in time, though it is read late", async () => {
    const request = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = "";
    // A machine that was too slow to send something in time has to try again.
    for (let isInTime = false; !isInTime; ) {
      const begun = performance.now();
      const accepted = once(http1, "connection");
      const connection = openRaw(port);
      await accepted;
      await thenStandStill(() => {
        connection.write(request);
        isInTime = performance.now() - begun < patience - 10;
      }, 2 * patience);
      await connection.ended;
      answer = connection.received().toString();
    }
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
  });
});
