import { describe } from "@jest/globals";
import { describeWatchEvents } from "../api-contract/watch-events.js";
import { duplexClients, streamClients } from "../support/api-streams.js";
import { isFullSuite } from "../support/suite.js";

/** The clients that the quick suite tries are all of them, over this and the other suites of streams. */
const named = (name: string) => streamClients.filter(([client]) => client === name);

// Protocols and stores are independent of each other: each is tried once.
describe.each([
  ["lmdb", isFullSuite ? streamClients : named("connect")],
  ["mongo", isFullSuite ? duplexClients : named("grpc")],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeWatchEvents({ engine, connect });
  });
});
