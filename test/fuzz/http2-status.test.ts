import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, it } from "@jest/globals";
import { readResponse, useWireSessions } from "../support/http/http2-wire.js";
import { readStatus } from "./http2-status.js";

const open = useWireSessions();

it("reads the status of every response from its frames", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  server.on("stream", (stream, { ":path": path = "" }) =>
    stream.respond({ ":status": Number(path.slice(1)) }, { endStream: true }),
  );
  await once(server, "listening");
  const wire = open(server.address() as AddressInfo);
  const statuses = [200, 204, 206, 304, 368, 400, 404, 427, 429, 500, 501, 502, 503, 511, 599];
  const read: number[] = [];
  for (const status of statuses) {
    const stream = wire.session.request({ ":path": `/${status}` });
    await readResponse(stream);
    const [head] = wire.responseFrames(stream);
    read.push(readStatus(head?.payload ?? Buffer.alloc(0)));
  }
  server.close();
  expect(read).toEqual(statuses);
});
