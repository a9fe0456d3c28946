import { describe, it } from "@jest/globals";
import { repetitions } from "../support/suite.js";
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
    "with %s are each answered, once, never with a 5xx",
    (_name, requests, count, _onMongo) => sendFamily(server, requests, some(count)),
    longest,
  );

  it(
    "whose end can be mistaken never let in another one that hides in them",
    () => sendFramed(server, some(6_000)),
    longest,
  );
});

describe(`random frames of HTTP/2 (FUZZ_SEED=${seed})`, () => {
  it(
    "are answered, or end their stream or connection, and harm no other",
    () => sendFrames(server, some(4_000)),
    longest,
  );
});

describe(`random calls of gRPC (FUZZ_SEED=${seed})`, () => {
  it(
    "are each answered, never with a fault of the server",
    () => callGrpc(server, some(12_000)),
    longest,
  );
});
