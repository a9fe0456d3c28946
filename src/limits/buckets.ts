import { TokenBucket } from "limiter";
import type { Logger } from "pino";
import type { Rate } from "../config/parsers.js";
import type { MaybePromise } from "../lib/async.js";
import { createGenerationalCache } from "../lib/cache.js";
import { withTimeout } from "../lib/timeout.js";
import type { RateCounts, TakenTokens } from "../store/port/store.js";

/** Named token buckets that several processes share. (These tokens are rate-limit permits.) */
interface SharedBuckets {
  /** Takes tokens (default 1) and returns 0, or takes none and returns the milliseconds until enough are available. */
  take(name: string, tokens?: number): MaybePromise<number>;
}

/** Tokens that this process has drawn from a bucket in the store. */
interface Allotment {
  tokens: number;
  validUntil: number;
  /** Until then the bucket in the store is empty. */
  emptyUntil: number;
  /** A draw in progress. Resolves with 0, or with the time to wait if the bucket was emptied. */
  pending: Promise<number> | undefined;
}

function createAllotment(): Allotment {
  return { tokens: 0, validUntil: 0, emptyUntil: 0, pending: undefined };
}

/** Each draw takes the tokens of this many milliseconds: few enough to share them fairly. */
const drawAhead = 100;

/** Milliseconds after which unused tokens are discarded, so that they do not accumulate. */
const tokenLifetime = 1_000;

/** Milliseconds to wait for the store. */
const storeTimeout = 500;

/**
 * Draws tokens from the store in small batches, so that few calls wait for it.
 * If the store is unavailable, this process counts alone: no call is refused
 * because of the store.
 */
export function createSharedBuckets(
  kind: string,
  rate: Rate,
  counts: RateCounts,
  storeStatus: StoreStatus,
): SharedBuckets {
  const drawSize = Math.min(rate.burst, Math.ceil((rate.count / rate.interval) * drawAhead));
  const allotments = createGenerationalCache<Allotment>(generationSize, 1);
  const localBuckets = createBuckets(rate);

  function allotmentOf(name: string): Allotment {
    return allotments.get(name, 0) ?? allotments.add(name, 0, createAllotment(), 1);
  }

  function draw(name: string, max: number, min?: number): Promise<TakenTokens> {
    return withTimeout(counts.draw(`${kind} ${name}`, rate, max, min), storeTimeout, onTimeout);
  }

  async function refill(name: string, allotment: Allotment): Promise<number> {
    try {
      const { tokens, wait } = await draw(name, drawSize);
      const now = performance.now();
      allotment.tokens = tokens;
      allotment.validUntil = now + tokenLifetime;
      const isEmpty = tokens < drawSize;
      allotment.emptyUntil = isEmpty ? now + wait : 0;
      storeStatus.markUp();
      return isEmpty ? wait : 0;
    } catch (err) {
      storeStatus.markDown(err);
      return 0;
    } finally {
      allotment.pending = undefined;
    }
  }

  function takeOne(name: string): MaybePromise<number> {
    if (storeStatus.isDown()) {
      return localBuckets.take(name);
    }
    const allotment = allotmentOf(name);
    const now = performance.now();
    if (allotment.tokens > 0 && now < allotment.validUntil) {
      allotment.tokens--;
      return 0;
    }
    if (now < allotment.emptyUntil) {
      return Math.ceil(allotment.emptyUntil - now);
    }
    allotment.pending ??= refill(name, allotment);
    // Refuses the rest: waiting for single tokens would build a queue.
    return allotment.pending.then((wait) =>
      allotment.tokens > 0 || wait === 0 ? takeOne(name) : wait,
    );
  }

  /**
   * Draws exactly the missing tokens, all or none. Partial draws would expire
   * here, and a large request could never succeed.
   */
  async function takeMany(name: string, tokens: number): Promise<number> {
    const allotment = allotmentOf(name);
    const { validUntil } = allotment;
    const local = performance.now() < validUntil ? Math.min(allotment.tokens, tokens) : 0;
    allotment.tokens -= local;
    if (local === tokens) {
      return 0;
    }
    try {
      const drawn = await draw(name, tokens - local, tokens - local);
      storeStatus.markUp();
      if (drawn.tokens > 0) {
        return 0;
      }
      if (allotment.validUntil === validUntil) {
        allotment.tokens += local;
      }
      return drawn.wait;
    } catch (err) {
      storeStatus.markDown(err);
      return localBuckets.take(name, tokens);
    }
  }

  return {
    take(name, tokens = 1) {
      if (tokens === 1) {
        return takeOne(name);
      }
      return storeStatus.isDown() ? localBuckets.take(name, tokens) : takeMany(name, tokens);
    },
  };
}

function onTimeout(): never {
  throw new Error(`the store did not respond within ${storeTimeout} ms`);
}

/** Named token buckets, which start full. */
interface Buckets {
  /** Takes tokens (default 1) and returns 0, or takes none and returns the milliseconds until enough are available. */
  take(name: string, tokens?: number): number;

  /** The tokens in a bucket when some were last requested. May be a fraction. */
  remaining(name: string): number;
}

/** Buckets in each of the two cache generations. */
export const generationSize = 10_000;

/** The fraction by which a bucket is larger, so that rounding errors refuse no caller that keeps to the limit. */
const roundingReserve = 1e-10;

/**
 * Creates buckets in this process. An evicted bucket is full again. That gives
 * an attacker no extra tokens: eviction takes thousands of other names, each
 * with as many tokens of its own.
 */
export function createBuckets({ count, interval, burst }: Rate): Buckets {
  const buckets = createGenerationalCache<TokenBucket>(generationSize, 1);

  function createBucket(name: string): TokenBucket {
    const bucketSize = burst * (1 + roundingReserve);
    const bucket = new TokenBucket({ bucketSize, tokensPerInterval: count, interval });
    bucket.content = bucketSize;
    return buckets.add(name, 0, bucket, 1);
  }

  return {
    take(name, tokens = 1) {
      const bucket = buckets.get(name, 0) ?? createBucket(name);
      // The clock is read twice, so the wait can be 0 although no token was taken.
      return bucket.tryRemoveTokens(tokens) ? 0 : Math.max(1, bucket.getWaitTime(tokens));
    },

    remaining: (name) => buckets.get(name, 0)?.content ?? burst,
  };
}

/** Tracks whether the store can count, and logs each change. */
interface StoreStatus {
  /** Whether this process currently counts alone. */
  isDown(): boolean;
  markDown(err: unknown): void;
  markUp(): void;
}

/** Milliseconds before the store is tried again. */
const retryInterval = 1_000;

export function createStoreStatus(log: Logger): StoreStatus {
  let retryAt = 0;
  let wasDown = false;
  return {
    isDown: () => performance.now() < retryAt,

    markDown(err) {
      retryAt = performance.now() + retryInterval;
      if (!wasDown) {
        wasDown = true;
        log.warn({ err }, "shared rate limits unavailable: counting in this process only");
      }
    },

    markUp() {
      if (wasDown) {
        wasDown = false;
        log.info("shared rate limits available again");
      }
    },
  };
}
