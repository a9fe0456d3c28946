import { describe } from "@jest/globals";
import { describeCheckStream } from "../../contract/api/check-stream.js";
import { clientNamed } from "../../support/api/streams.js";

// Protocols and stores are independent: each is tested once.
describe.each([
  ["lmdb", clientNamed("grpc")],
  ["mongo", clientNamed("connect over HTTP/2")],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeCheckStream({ engine, connect });
  });
});
