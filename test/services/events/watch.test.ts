import { describe } from "@jest/globals";
import { describeWatchEvents } from "../../contract/api/watch-events.js";
import { clientNamed, clientsExcept } from "../../support/api/streams.js";
import { isFullSuite } from "../../support/jest/suite.js";

// Protocols and stores are independent: each is tested once.
describe.each([
  ["lmdb", isFullSuite ? clientsExcept("grpc") : clientNamed("connect")],
  ["mongo", clientNamed("grpc")],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeWatchEvents({ engine, connect });
  });
});
