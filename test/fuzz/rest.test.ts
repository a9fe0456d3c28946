import { describe, it } from "@jest/globals";
import { useFuzzedServer } from "./fuzzed-server.js";
import { restFamilies, sendFamily } from "./rest-families.js";
import { seed } from "./seeded.js";

const server = useFuzzedServer();

describe(`requests over HTTP/1.1 at random (FUZZ_SEED=${seed})`, () => {
  it.each(restFamilies)(
    "with %s are each answered, once, never with a 5xx",
    (_name, requests, count, _onMongo) => sendFamily(server, requests, count),
    240_000,
  );
});
