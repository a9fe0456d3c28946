import { describe, it } from "@jest/globals";
import { repetitions } from "../support/jest/suite.js";
import { fuzzGrpc } from "./fuzz-grpc.js";
import { fuzzFraming, fuzzHttp2 } from "./fuzz-raw.js";
import { fuzzRest, restRequests } from "./fuzz-rest.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { seed } from "./harness.js";

const server = useFuzzedServer();

/** In milliseconds. */
const timeout = 600_000;

/** The quick suite sends a twelfth of the requests. */
const scale = (count: number) => repetitions({ quick: Math.ceil(count / 12), full: count });

describe(`random requests over HTTP/1.1 (FUZZ_SEED=${seed})`, () => {
  it.each(restRequests)(
    "each get one response and never a 5xx: %s",
    (_name, requests, count, _onMongo) => fuzzRest(server, requests, scale(count)),
    timeout,
  );

  it(
    "never smuggle in another request if their framing is ambiguous",
    () => fuzzFraming(server, scale(3_000)),
    timeout,
  );
});

describe(`random HTTP/2 frames (FUZZ_SEED=${seed})`, () => {
  it(
    "get a response, or end their stream or connection, and harm no other",
    () => fuzzHttp2(server, scale(2_000)),
    timeout,
  );
});

describe(`random gRPC calls (FUZZ_SEED=${seed})`, () => {
  it("each get a status, never an internal error", () => fuzzGrpc(server, scale(4_000)), timeout);
});
