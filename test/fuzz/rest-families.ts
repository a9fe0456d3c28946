import { bodyRequests } from "./body-requests.js";
import type { FuzzedServer } from "./fuzzed-server.js";
import { keyRequests, originRequests, overrideRequests } from "./header-requests.js";
import { type PipelineOptions, pipeline, type RawAnswer } from "./pipeline.js";
import { createFindings, seeded } from "./seeded.js";
import { pathRequests, queryRequests } from "./target-requests.js";

/** The kinds of requests, how many of each there are, and how many of these go to MongoDB too. */
export const restFamilies = [
  ["bodies with operators, prototypes, twins, odd numbers and dates", bodyRequests, 14_000, 3_000],
  ["paths that are nearly those of something", pathRequests, 14_000, 1_000],
  ["parameters that are none", queryRequests, 5_000, 3_000],
  ["keys that are none, or too many", keyRequests, 24_000, 500],
  ["origins and hosts that look like others", originRequests, 9_000, 500],
  ["headers that others would listen to", overrideRequests, 12_000, 500],
] as const;

/** Connect itself says what to answer to a compression that nobody knows. */
function isFault({ status, body }: RawAnswer): boolean {
  return (
    status >= 500 && !body.startsWith('{"code":"unimplemented","message":"unknown compression')
  );
}

/** Sends so many requests of a kind, and expects each to be answered, once, as it should be, never with a 5xx. */
export async function sendFamily(
  server: FuzzedServer,
  requests: (typeof restFamilies)[number][1],
  count: number,
  options?: PipelineOptions,
): Promise<void> {
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
    options,
  );
  findings.expectNone();
}
