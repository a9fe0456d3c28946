import { bodyRequests } from "./body-requests.js";
import type { FuzzedServer } from "./fuzzed-server.js";
import { createFailureLog, generate } from "./harness.js";
import { keyRequests, originRequests, overrideRequests } from "./header-requests.js";
import { type PipelineOptions, pipeline, type RawResponse } from "./pipeline.js";
import { pathRequests, queryRequests } from "./target-requests.js";

/** The kinds of requests, their number, and their number on MongoDB. */
export const restRequests = [
  [
    "operators, prototypes, duplicate keys, invalid numbers and dates in bodies",
    bodyRequests,
    6_000,
    1_500,
  ],
  ["paths that resemble valid paths", pathRequests, 6_000, 500],
  ["invalid query parameters", queryRequests, 3_000, 1_500],
  ["invalid or repeated keys", keyRequests, 8_000, 500],
  ["lookalike origins and hosts", originRequests, 4_000, 500],
  ["headers that other servers interpret", overrideRequests, 4_000, 500],
] as const;

/** Connect's own response to an unknown compression is no server error. */
function isServerError({ status, body }: RawResponse): boolean {
  return (
    status >= 500 && !body.startsWith('{"code":"unimplemented","message":"unknown compression')
  );
}

/** Sends requests of one kind, and expects one valid response to each, never a 5xx. */
export async function fuzzRest(
  server: FuzzedServer,
  requests: (typeof restRequests)[number][1],
  count: number,
  options?: PipelineOptions,
): Promise<void> {
  const failures = createFailureLog();
  await pipeline(
    server.port,
    generate(requests(server), count),
    (input, response) => {
      const isSafe = !isServerError(response) && !response.body.includes(server.victim.mark);
      if (!isSafe || !input.accepts(response)) {
        failures.add(input.bytes.toString("latin1"), response);
      }
    },
    failures,
    options,
  );
  failures.expectEmpty();
}
