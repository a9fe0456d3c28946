import { describe } from "@jest/globals";
import { describeWatch } from "../api-contract/watch.js";
import { streamClients } from "../support/api-streams.js";
import { engines } from "../support/server.js";

describe.each(engines)("store=%s", (engine) => {
  describe.each(streamClients)("client=%s", (_client, connect) => {
    describeWatch({ engine, connect });
  });
});
