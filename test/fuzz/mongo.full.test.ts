import { describe, it } from "@jest/globals";
import { callGrpc } from "./call-grpc.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { restFamilies, sendFamily } from "./rest-families.js";
import { seed } from "./seeded.js";

const server = useFuzzedServer("mongo");

/** How many are under way on each of a few connections: fewer than there are connections to MongoDB, so that none waits for one. */
const depth = 10;

describe(`a service on MongoDB responds, never with an internal error (FUZZ_SEED=${seed})`, () => {
  it.each(restFamilies)(
    "requests with %s",
    (_name, requests, _all, count) => sendFamily(server, requests, count, { depth }),
    600_000,
  );

  it("gRPC calls", () => callGrpc(server, 1_500, depth), 600_000);
});
