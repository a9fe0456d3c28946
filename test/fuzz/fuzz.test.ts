import { describe, it } from "@jest/globals";
import { repetitions } from "../support/jest/suite.js";
import { callGrpc } from "./call-grpc.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { restFamilies, sendFamily } from "./rest-families.js";
import { seed } from "./seeded.js";
import { sendFramed } from "./send-framed.js";
import { sendFrames } from "./send-frames.js";

const server = useFuzzedServer();

/** Ends a test that hangs, in milliseconds. */
const longest = 600_000;

/** `npm test` sends some of them, `npm run test:full` all. */
const some = (count: number) => repetitions({ quick: Math.ceil(count / 30), full: count });

describe(`random requests over HTTP/1.1 (FUZZ_SEED=${seed})`, () => {
  it.each(restFamilies)(
    "with %s each get one response, never a 5xx",
    (_name, requests, count, _onMongo) => sendFamily(server, requests, some(count)),
    longest,
  );

  it(
    "with ambiguous framing never smuggle in another request",
    () => sendFramed(server, some(6_000)),
    longest,
  );
});

describe(`random HTTP/2 frames (FUZZ_SEED=${seed})`, () => {
  it(
    "get a response, or end their stream or connection, and harm no other",
    () => sendFrames(server, some(4_000)),
    longest,
  );
});

describe(`random gRPC calls (FUZZ_SEED=${seed})`, () => {
  it("each get a status, never an internal error", () => callGrpc(server, some(12_000)), longest);
});
