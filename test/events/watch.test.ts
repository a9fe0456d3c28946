import { describe } from "@jest/globals";
import { describeWatchEvents } from "../api-contract/watch-events.js";
import { streamClients } from "../support/api-streams.js";
import { engines } from "../support/server.js";

describe.each(engines)("store=%s", (engine) => {
  describe.each(streamClients)("client=%s", (_client, connect) => {
    describeWatchEvents({ engine, connect });
  });
});
