import type { Rate } from "../config/parsers.js";
import { rateLimitHeader, rateLimitPolicyHeader } from "../contract/headers.js";

/** The headers of a limit (draft-ietf-httpapi-ratelimit-headers-11): names and values in alternation. */
interface RateLimitHeaders {
  /** The limit alone, if this process does not know how many tokens are left. */
  readonly policy: readonly string[];

  /** The limit and the tokens of a bucket. */
  ofTokens(tokens: number): readonly string[];

  /** The limit and an empty bucket, which gets a token in `wait` milliseconds. */
  ofEmpty(wait: number): readonly string[];
}

const policyName = rateLimitPolicyHeader.toLowerCase();
const statusName = rateLimitHeader.toLowerCase();

/**
 * The policy is the burst and the time in which an empty bucket fills. A caller
 * that makes at most `q` calls in any `w` seconds is never refused.
 */
export function createRateLimitHeaders(
  limit: string,
  { count, interval, burst }: Rate,
): RateLimitHeaders {
  const window = Math.ceil((burst * interval) / (count * 1_000));
  const policy = [policyName, `"${limit}";q=${burst};w=${window}`];
  const write = (left: number, wait: number) =>
    policy.concat(statusName, `"${limit}";r=${left};t=${toSeconds(wait)}`);
  return {
    policy,

    ofTokens(tokens) {
      const left = Math.floor(tokens);
      return write(left, ((left + 1 - tokens) * interval) / count);
    },

    ofEmpty: (wait) => write(0, wait),
  };
}

/** Whole seconds, rounded up. Fractions of a millisecond are rounding errors, or no time to wait for. */
function toSeconds(wait: number): number {
  return Math.max(1, Math.ceil(Math.round(wait) / 1_000));
}
