import { afterEach, describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import type { Rate } from "../../src/config/parsers.js";
import { createBuckets } from "../../src/limits/buckets.js";
import { createRateLimitHeaders } from "../../src/limits/headers.js";
import { freezeTime } from "../support/frozen-time.js";

afterEach(() => {
  jest.restoreAllMocks();
});

const rates: fc.Arbitrary<Rate> = fc.record({
  count: fc.integer({ min: 1, max: 1_000 }),
  interval: fc.constantFrom(1_000, 60_000, 3_600_000, 4_000 / 3),
  burst: fc.integer({ min: 1, max: 200 }),
});

/** The parameters of both headers. They have the form that the draft requires. */
function parse(headers: readonly string[]) {
  const [policyName, policy = "", statusName, status = ""] = headers;
  expect([policyName, statusName]).toEqual(["ratelimit-policy", "ratelimit"]);
  const [, q, w] = /^"private";q=(\d{1,15});w=([1-9]\d{0,14})$/.exec(policy) ?? [];
  const [, r, t] = /^"private";r=(\d{1,15});t=(\d{1,15})$/.exec(status) ?? [];
  return { q: Number(q), w: Number(w), r: Number(r), t: Number(t) };
}

describe("the RateLimit headers of a bucket", () => {
  it("state a policy that never refuses a caller who follows it", () => {
    const property = fc.property(
      rates,
      fc.array(fc.nat(1_000), { maxLength: 50 }),
      (rate, pauses) => {
        const { now, advance } = freezeTime(1_000);
        const { take, remaining } = createBuckets(rate);
        const calls: number[] = [];
        for (const pause of pauses) {
          const { q, w } = parse(createRateLimitHeaders("private", rate).ofTokens(remaining("a")));
          advance(pause * w);
          const recent = calls.filter((at) => at > now() - w * 1_000).length;
          for (let call = recent; call < q; call++) {
            expect(take("a")).toBe(0);
            calls.push(now());
          }
        }
      },
    );
    const roundingErrors: [Rate, number[]] = [
      { count: 9, interval: 60_000, burst: 90 },
      [0, 2, 998],
    ];
    fc.assert(property, { numRuns: 100, examples: [roundingErrors] });
  });

  it("count the calls that are left, and the seconds until there is one more", () => {
    const property = fc.property(
      rates,
      fc.array(fc.record({ pause: fc.nat(3_000), tokens: fc.integer({ min: 1, max: 20 }) })),
      (rate, calls) => {
        const { advance } = freezeTime(1_000);
        const { take, remaining } = createBuckets(rate);
        for (const { pause, tokens } of calls) {
          advance(pause);
          if (tokens <= rate.burst) {
            take("a", tokens);
          }
        }
        take("a");
        const { q, r, t } = parse(createRateLimitHeaders("private", rate).ofTokens(remaining("a")));
        expect(r).toBeLessThanOrEqual(q);
        for (let call = 0; call < r; call++) {
          expect(take("a")).toBe(0);
        }
        expect(take("a")).toBeGreaterThan(0);
        // A millisecond more, for rounding errors.
        advance(t * 1_000 + 1);
        expect(take("a")).toBe(0);
      },
    );
    fc.assert(property, { numRuns: 200 });
  });

  it("never state a later time than Retry-After", () => {
    const property = fc.property(rates, fc.nat(200), (rate, pause) => {
      const { advance } = freezeTime(1_000);
      const { take, remaining } = createBuckets(rate);
      while (take("a") === 0) {
        // Until the bucket is empty.
      }
      advance(pause);
      const wait = take("a", rate.burst);
      const { t } = parse(createRateLimitHeaders("private", rate).ofTokens(remaining("a")));
      expect(t).toBeLessThanOrEqual(Math.max(1, Math.ceil(wait / 1_000)));
    });
    fc.assert(property, { numRuns: 100 });
  });
});
