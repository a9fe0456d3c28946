import { TokenBucket } from "limiter";
import type { Logger } from "pino";
import type { Rate } from "../../config/parsers.js";
import { createGenerationalCache } from "../../lib/cache.js";
import type { MaybePromise } from "../../lib/maybe-promise.js";
import { withTimeout } from "../../lib/timeout.js";
import type { Drawn, RateCounts } from "../../store/port/rate-counts.js";

/** Token buckets by name, as many processes share them. */
interface SharedBuckets {
  /** Takes so many tokens, one where nothing is said, and returns 0, or takes none and returns in how many milliseconds there will be enough. */
  take(name: string, tokens?: number): MaybePromise<number>;
}

/** What this process has drawn of a bucket and not given away, or until when there is nothing to draw. */
interface Allotment {
  tokens: number;
  goodUntil: number;
  emptyUntil: number;
  /** Resolves when more is drawn, with 0, or where that is all there was with the time until there is another. */
  asking: Promise<number> | undefined;
}

function createAllotment(): Allotment {
  return { tokens: 0, goodUntil: 0, emptyUntil: 0, asking: undefined };
}

/** As many tokens are drawn at once as come in so many milliseconds: few enough to share them fairly. */
const drawnAhead = 100;

/** How long tokens may lie here before they are given away, in milliseconds, so that none are saved up. */
const freshness = 1_000;

/** How long the store may take, in milliseconds. */
const patience = 500;

/**
 * Buckets that are filled by what they draw from those in the store, some
 * tokens at a time, so that few calls wait for it. Nobody is refused because
 * the store does not answer: this process counts by itself until it does.
 */
export function createSharedBuckets(
  kind: string,
  rate: Rate,
  counts: RateCounts,
  contact: StoreStatus,
): SharedBuckets {
  const most = Math.min(rate.burst, Math.ceil((rate.count / rate.interval) * drawnAhead));
  const allotments = createGenerationalCache<Allotment>(generationSize, 1);
  const ownBuckets = createBuckets(rate);

  function allotmentOf(name: string): Allotment {
    return allotments.get(name, 0) ?? allotments.add(name, 0, createAllotment(), 1);
  }

  function draw(name: string, most: number, least?: number): Promise<Drawn> {
    return withTimeout(counts.draw(`${kind} ${name}`, rate, most, least), patience, giveUp);
  }

  async function ask(name: string, allotment: Allotment): Promise<number> {
    try {
      const { tokens, wait } = await draw(name, most);
      const now = performance.now();
      allotment.tokens = tokens;
      allotment.goodUntil = now + freshness;
      const isAll = tokens < most;
      allotment.emptyUntil = isAll ? now + wait : 0;
      contact.markUp();
      return isAll ? wait : 0;
    } catch (err) {
      contact.markDown(err);
      return 0;
    } finally {
      allotment.asking = undefined;
    }
  }

  function takeOne(name: string): MaybePromise<number> {
    if (contact.isDown()) {
      return ownBuckets.take(name);
    }
    const allotment = allotmentOf(name);
    const now = performance.now();
    if (allotment.tokens > 0 && now < allotment.goodUntil) {
      allotment.tokens--;
      return 0;
    }
    if (now < allotment.emptyUntil) {
      return Math.ceil(allotment.emptyUntil - now);
    }
    allotment.asking ??= ask(name, allotment);
    // Those who come away empty-handed are refused: to wait for single tokens would make a queue of them.
    return allotment.asking.then((wait) =>
      allotment.tokens > 0 || wait === 0 ? takeOne(name) : wait,
    );
  }

  /**
   * Draws what is missing for exactly these tokens, all or none: a part that
   * is drawn in vain goes stale here, and many tokens would never come together.
   */
  async function takeMany(name: string, tokens: number): Promise<number> {
    const allotment = allotmentOf(name);
    const { goodUntil } = allotment;
    const own = performance.now() < goodUntil ? Math.min(allotment.tokens, tokens) : 0;
    allotment.tokens -= own;
    if (own === tokens) {
      return 0;
    }
    try {
      const drawn = await draw(name, tokens - own, tokens - own);
      contact.markUp();
      if (drawn.tokens > 0) {
        return 0;
      }
      if (allotment.goodUntil === goodUntil) {
        allotment.tokens += own;
      }
      return drawn.wait;
    } catch (err) {
      contact.markDown(err);
      return ownBuckets.take(name, tokens);
    }
  }

  return {
    take(name, tokens = 1) {
      if (tokens === 1) {
        return takeOne(name);
      }
      return contact.isDown() ? ownBuckets.take(name, tokens) : takeMany(name, tokens);
    },
  };
}

function giveUp(): never {
  throw new Error(`no answer for ${patience} ms`);
}

/** Token buckets by name, which are full when they are first taken from. */
interface Buckets {
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
  const buckets = createGenerationalCache<TokenBucket>(generationSize, 1);

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

/** Tells whether the store counts, and of each change of that in the log. */
interface StoreStatus {
  /** Whether this process has to count by itself for now. */
  isDown(): boolean;
  markDown(err: unknown): void;
  markUp(): void;
}

/** How long this process counts by itself before it asks the store again, in milliseconds. */
const lossInterval = 1_000;

export function createStoreStatus(log: Logger): StoreStatus {
  let askAgainAt = 0;
  let isLost = false;
  return {
    isDown: () => performance.now() < askAgainAt,

    markDown(err) {
      askAgainAt = performance.now() + lossInterval;
      if (!isLost) {
        isLost = true;
        log.warn({ err }, "rate limits cannot be counted together: this process counts by itself");
      }
    },

    markUp() {
      if (isLost) {
        isLost = false;
        log.info("rate limits are counted together again");
      }
    },
  };
}
