import { describe } from "@jest/globals";
import { describeWatchEvents } from "../api-contract/watch-events.js";
import { duplexClients, streamClients } from "../support/api-streams.js";

// A protocol and a store know nothing of each other: that each is tried is enough.
describe.each([
  ["lmdb", streamClients],
  ["mongo", duplexClients],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeWatchEvents({ engine, connect });
  });
});
