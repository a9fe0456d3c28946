import { describe, it } from "@jest/globals";
import { fuzzGrpc } from "./fuzz-grpc.js";
import { fuzzRest, restRequests } from "./fuzz-rest.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { seed } from "./harness.js";

const server = useFuzzedServer("mongo");

/** The number of pending calls per connection. Few enough that none waits for a connection to MongoDB. */
const depth = 10;

describe(`a service on MongoDB under random input (FUZZ_SEED=${seed})`, () => {
  it.each(restRequests)(
    "responds to requests with %s, never with a 5xx",
    (_name, requests, _all, count) => fuzzRest(server, requests, count, { depth }),
    600_000,
  );

  it(
    "responds to gRPC calls, never with an internal error",
    () => fuzzGrpc(server, 1_000, depth),
    600_000,
  );
});
