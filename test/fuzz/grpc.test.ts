import { describe, it } from "@jest/globals";
import { callGrpc } from "./call-grpc.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { seed } from "./seeded.js";

const server = useFuzzedServer();

describe(`calls of gRPC at random (FUZZ_SEED=${seed})`, () => {
  it(
    "are each answered, never with a fault of the server",
    () => callGrpc(server, 12_000),
    240_000,
  );
});
