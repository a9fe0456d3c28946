import { describe } from "@jest/globals";
import { describeCheckStream } from "../api-contract/check-stream.js";
import { duplexClients } from "../support/api-streams.js";
import { engines } from "../support/server.js";

describe.each(engines)("store=%s", (engine) => {
  describe.each(duplexClients)("client=%s", (_client, connect) => {
    describeCheckStream({ engine, connect });
  });
});
