import { describe } from "@jest/globals";
import { describeCheckStream } from "../api-contract/check-stream.js";
import { duplexClients } from "../support/api-streams.js";
import { isFullSuite } from "../support/suite.js";

/** The clients that the quick suite tries are all of them, over this and the other suites of streams. */
const named = (name: string) => duplexClients.filter(([client]) => client === name);

// Protocols and stores are independent of each other: each is tried once.
describe.each([
  ["lmdb", isFullSuite ? duplexClients : named("grpc")],
  ["mongo", isFullSuite ? duplexClients : named("connect over HTTP/2")],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeCheckStream({ engine, connect });
  });
});
