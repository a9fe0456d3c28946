import { describe } from "@jest/globals";
import { describeWatchCredentials } from "../../contract/api/watch-credentials.js";
import { clientNamed, clientsExcept } from "../../support/api/streams.js";
import { isFullSuite } from "../../support/jest/suite.js";

// Protocols and stores are independent: each is tested once.
describe.each([
  ["lmdb", isFullSuite ? clientsExcept("connect over HTTP/2") : clientNamed("grpc-web")],
  ["mongo", clientNamed("connect over HTTP/2")],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeWatchCredentials({ engine, connect });
  });
});
