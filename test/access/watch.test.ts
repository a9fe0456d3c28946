import { describe } from "@jest/globals";
import { describeWatch } from "../api-contract/watch.js";
import { duplexClients, streamClients } from "../support/api-streams.js";
import { isFullSuite } from "../support/suite.js";

// The other protocols are tried by the watch of events, and by the full suite.
const clients = streamClients.filter(
  ([name]) => isFullSuite || ["connect over HTTP/2", "grpc-web"].includes(name),
);

// Protocols and stores are independent of each other: each is tried once.
describe.each([
  ["lmdb", clients],
  ["mongo", duplexClients.slice(-1)],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeWatch({ engine, connect });
  });
});
