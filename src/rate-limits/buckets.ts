import { TokenBucket } from "limiter";
import { createGenerations } from "../generations.js";
import type { Rate } from "../store/rate-counts.js";

/** Token buckets by name, which are full when they are first taken from. */
export interface Buckets {
  /** Takes so many tokens, one where nothing is said, and returns 0, or takes none and returns in how many milliseconds there will be enough. */
  take(name: string, tokens?: number): number;
}

/** How many buckets each of two generations may hold. */
export const generationSize = 10_000;

/**
 * Buckets in this process. Of the names that were last asked for at least so
 * many are remembered, and what is forgotten is full again. That is no way to
 * more tokens: to have a bucket forgotten takes thousands of other names, each
 * of which has as many tokens to give.
 */
export function createBuckets({ count, interval, burst }: Rate): Buckets {
  const buckets = createGenerations<TokenBucket>(generationSize, 1);

  function createBucket(name: string): TokenBucket {
    const options = { bucketSize: burst, tokensPerInterval: count, interval };
    const bucket = new TokenBucket(options);
    bucket.content = burst;
    return buckets.add(name, 0, bucket, 1);
  }

  return {
    take(name, tokens = 1) {
      const bucket = buckets.get(name, 0) ?? createBucket(name);
      // The last token may come between the two looks at the clock.
      return bucket.tryRemoveTokens(tokens) ? 0 : Math.max(1, bucket.getWaitTime(tokens));
    },
  };
}
