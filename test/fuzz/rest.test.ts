import { describe, it } from "@jest/globals";
import { bodyRequests } from "./body-requests.js";
import { useFuzzedServer } from "./fuzzed-server.js";
import { keyRequests, originRequests, overrideRequests } from "./header-requests.js";
import { pipeline, type RawAnswer } from "./pipeline.js";
import { createFindings, seed, seeded } from "./seeded.js";
import { pathRequests, queryRequests } from "./target-requests.js";

const server = useFuzzedServer();

const families = [
  ["bodies with operators, prototypes, twins, odd numbers and dates", bodyRequests, 14_000],
  ["paths that are nearly those of something", pathRequests, 14_000],
  ["parameters that are none", queryRequests, 5_000],
  ["keys that are none, or too many", keyRequests, 24_000],
  ["origins and hosts that look like others", originRequests, 9_000],
  ["headers that others would listen to", overrideRequests, 12_000],
] as const;

/** Connect itself says what to answer to a compression that nobody knows. */
function isFault({ status, body }: RawAnswer): boolean {
  return (
    status >= 500 && !body.startsWith('{"code":"unimplemented","message":"unknown compression')
  );
}

describe(`requests over HTTP/1.1 at random (FUZZ_SEED=${seed})`, () => {
  it.each(families)(
    "with %s are each answered, once, never with a 5xx",
    async (_name, requests, count) => {
      const findings = createFindings();
      await pipeline(
        server.port,
        seeded(requests(server), count),
        (input, answer) => {
          const isSafe = !isFault(answer) && !answer.body.includes(server.victim.mark);
          if (!isSafe || !input.accepts(answer)) {
            findings.add(input.bytes.toString("latin1"), answer);
          }
        },
        findings,
      );
      findings.expectNone();
    },
    240_000,
  );
});
