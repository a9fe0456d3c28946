import { describe } from "@jest/globals";
import { describeCheckStream } from "../api-contract/check-stream.js";
import { duplexClients } from "../support/api-streams.js";

// Protocols and stores are independent of each other: each is tried once.
describe.each([
  ["lmdb", duplexClients],
  ["mongo", duplexClients.slice(-1)],
] as const)("store=%s", (engine, clients) => {
  describe.each(clients)("client=%s", (_client, connect) => {
    describeCheckStream({ engine, connect });
  });
});
