import { afterEach, describe, expect, it, jest } from "@jest/globals";
import fc from "fast-check";
import pino from "pino";
import { createReadAddressOf } from "../../src/auth/caller-address.js";
import type { Rate } from "../../src/config/parsers.js";
import {
  createBuckets,
  createSharedBuckets,
  createStoreStatus,
  generationSize,
} from "../../src/limits/buckets.js";
import { createAddressKey } from "../../src/limits/rate-limits.js";
import type { RateCounts, TakenTokens } from "../../src/store/port/store.js";
import { freezeTime } from "../support/frozen-time.js";

afterEach(() => {
  jest.restoreAllMocks();
});

const rates = fc.record<Rate>({
  count: fc.integer({ min: 1, max: 2_000 }),
  interval: fc.constantFrom(1_000, 60_000, 3_600_000),
  burst: fc.integer({ min: 1, max: 300 }),
});

/** Calls with a delay after the previous one and a number of tokens. */
const calls = fc.array(
  fc.record({
    pause: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 0, max: 50 }),
      fc.integer({ max: 90_000, min: 0 }),
    ),
    count: fc.integer({ min: 1, max: 40 }),
    tokens: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 20 })),
  }),
  { maxLength: 60 },
);

function createTestLog() {
  const lines: { readonly msg: string }[] = [];
  return { lines, log: pino({}, { write: (line) => lines.push(JSON.parse(line)) }) };
}

/** Returns the largest excess of granted tokens over the refill in any interval. */
function getLargestBurst(granted: readonly number[], { count, interval }: Rate): number {
  let [least, most] = [Number.POSITIVE_INFINITY, 0];
  for (const [before, time] of granted.entries()) {
    const surplus = before - ((time - (granted[0] as number)) * count) / interval;
    least = Math.min(least, surplus);
    most = Math.max(most, surplus - least + 1);
  }
  return most;
}

/** For floating-point errors. */
const tolerance = 1e-6;

describe("a token bucket", () => {
  it("never gives more than its burst plus the refill in any interval", () => {
    const property = fc.property(rates, calls, (rate, calls) => {
      const { now, advance } = freezeTime(1_000);
      const { take } = createBuckets(rate);
      const granted: number[] = [];
      for (const { pause, count, tokens } of calls) {
        advance(pause);
        for (let i = 0; i < count; i++) {
          if (tokens <= rate.burst && take("a", tokens) === 0) {
            granted.push(...Array(tokens).fill(now()));
          }
        }
      }
      expect(getLargestBurst(granted, rate)).toBeLessThanOrEqual(rate.burst + tolerance);
    });
    fc.assert(property, { numRuns: 60 });
  });

  it("has a token after the returned wait and not sooner", () => {
    const property = fc.property(rates, (rate) => {
      const { advance } = freezeTime(1_000);
      const { take } = createBuckets(rate);
      const waits = Array.from({ length: rate.burst }, () => take("a"));
      expect(Math.max(...waits)).toBe(0);
      const wait = take("a");
      expect(wait).toBeGreaterThanOrEqual(1);
      advance(wait - 1);
      expect(take("a")).toBeGreaterThan(0);
      // Fractions may add up to slightly less than a token.
      advance(2);
      expect(take("a")).toBe(0);
    });
    fc.assert(property, { numRuns: 100 });
  });

  it("gives many tokens after the returned wait and keeps its tokens until then", () => {
    const { advance } = freezeTime(1_000);
    const { take } = createBuckets({ count: 1, interval: 1_000, burst: 10 });
    expect([take("a", 8), take("a", 8)]).toEqual([0, 6_000]);
    expect(take("a", 2)).toBe(0);
    advance(6_000);
    expect([take("a", 7), take("a", 6)]).toEqual([1_000, 0]);
  });

  it("is separate for each name", () => {
    freezeTime(1_000);
    const { take } = createBuckets({ count: 1, interval: 1_000, burst: 1 });
    expect([take("a"), take("b"), take("a")]).toEqual([0, 0, 1_000]);
  });

  it("stays cached while in use", () => {
    freezeTime(1_000);
    const { take } = createBuckets({ count: 1, interval: 3_600_000, burst: 1 });
    expect(take("busy")).toBe(0);
    for (let i = 0; i < 5 * generationSize; i++) {
      take(String(i));
      if (i % (generationSize / 2) === 0) {
        expect(take("busy")).toBeGreaterThan(0);
      }
    }
  });

  it("is full again after eviction", () => {
    freezeTime(1_000);
    const { take } = createBuckets({ count: 1, interval: 3_600_000, burst: 1 });
    expect(take("idle")).toBe(0);
    for (let i = 0; i < 2 * generationSize; i++) {
      take(String(i));
    }
    expect(take("idle")).toBe(0);
  });
});

/** A fake store of shared counts. */
function createFakeCounts(now: () => number) {
  const buckets = new Map<string, { tokens: number; at: number }>();
  let draws = 0;
  const counts: RateCounts = {
    async draw(name, { count, interval, burst }, most, least = 1): Promise<TakenTokens> {
      draws++;
      const bucket = buckets.get(name) ?? { tokens: burst, at: now() };
      const held = Math.min(burst, bucket.tokens + ((now() - bucket.at) * count) / interval);
      const tokens = held < least ? 0 : Math.min(most, Math.floor(held));
      buckets.set(name, { tokens: held - tokens, at: now() });
      return { tokens, wait: Math.max(1, Math.ceil(((least - held) * interval) / count)) };
    },
  };
  return { counts, draws: () => draws };
}

describe("shared token buckets", () => {
  const rate: Rate = { count: 1_000, interval: 1_000, burst: 2_000 };

  it("never give more in total than the burst, the refill and one second in advance", async () => {
    const property = fc.asyncProperty(rates, calls, async (rate, calls) => {
      const { now, advance } = freezeTime(1_000);
      const { counts } = createFakeCounts(now);
      const { log } = createTestLog();
      const processes = [0, 1, 2].map(() =>
        createSharedBuckets("kind", rate, counts, createStoreStatus(log)),
      );
      const granted: number[] = [];
      for (const { pause, count, tokens } of calls) {
        advance(pause);
        const take = (_: unknown, i: number) =>
          tokens > rate.burst ? 1 : processes[i % 3]?.take("a", tokens);
        for (const wait of await Promise.all(Array.from({ length: count }, take))) {
          if (wait === 0) {
            granted.push(...Array(tokens).fill(now()));
          }
        }
      }
      const refillPerSecond = (1_000 * rate.count) / rate.interval;
      expect(getLargestBurst(granted, rate)).toBeLessThanOrEqual(
        rate.burst + refillPerSecond + tolerance,
      );
    });
    await fc.assert(property, { numRuns: 60 });
  });

  it("draw tokens in batches, but not while the bucket is empty", async () => {
    const { now, advance } = freezeTime(1_000);
    const { counts, draws } = createFakeCounts(now);
    const { log } = createTestLog();
    const { take } = createSharedBuckets("kind", rate, counts, createStoreStatus(log));
    const waits = await Promise.all(Array.from({ length: 3_000 }, () => take("a")));
    expect(waits.filter((wait) => wait === 0)).toHaveLength(rate.burst);
    expect(draws()).toBe(rate.burst / 100 + 1);
    expect(take("a")).toBe(1);
    expect(draws()).toBe(rate.burst / 100 + 1);
    advance(1);
    expect(await take("a")).toBe(0);
  });

  it("give many tokens after the returned wait, even if single tokens are taken meanwhile", async () => {
    const { now, advance } = freezeTime(1_000);
    const { counts } = createFakeCounts(now);
    const { log } = createTestLog();
    const slowRate: Rate = { count: 10, interval: 1_000, burst: 100 };
    const { take } = createSharedBuckets("kind", slowRate, counts, createStoreStatus(log));
    expect(await take("a", 60)).toBe(0);
    expect(await take("a", 60)).toBe(2_000);
    expect(await take("a")).toBe(0);
    advance(1_999);
    expect(await take("a", 60)).toBeGreaterThan(0);
    advance(102);
    expect(await take("a", 60)).toBe(0);
  });

  it("use tokens that the process has already drawn", async () => {
    const { now } = freezeTime(1_000);
    const { counts, draws } = createFakeCounts(now);
    const { log } = createTestLog();
    const { take } = createSharedBuckets("kind", rate, counts, createStoreStatus(log));
    expect(await take("a")).toBe(0);
    expect(await take("a", 99)).toBe(0);
    expect(draws()).toBe(1);
  });

  it("discard unused tokens of a process", async () => {
    const { now, advance } = freezeTime(1_000);
    const { counts } = createFakeCounts(now);
    const { log } = createTestLog();
    const processes = Array.from({ length: 20 }, () =>
      createSharedBuckets("kind", rate, counts, createStoreStatus(log)),
    );
    const takeFromEach = async () => {
      const waits = await Promise.all(processes.map(({ take }) => take("a")));
      return waits.filter((wait) => wait === 0).length;
    };
    expect(await takeFromEach()).toBe(processes.length);
    advance(10_000);
    let granted = 0;
    for (let round = 0; round < 200; round++) {
      granted += await takeFromEach();
    }
    expect(granted).toBe(rate.burst);
  });

  it("refuse calls instead of queuing them while tokens refill one at a time", async () => {
    let now = 1_000;
    // Each clock read advances the time.
    jest.spyOn(performance, "now").mockImplementation(() => {
      now += 0.05;
      return now;
    });
    const { counts, draws } = createFakeCounts(() => now);
    const { log } = createTestLog();
    const { take } = createSharedBuckets(
      "kind",
      { ...rate, burst: 100 },
      counts,
      createStoreStatus(log),
    );
    await Promise.all(Array.from({ length: 500 }, () => take("a")));
    expect(draws()).toBe(2);
  });

  it("count locally while the store is unavailable, and log it once", async () => {
    const { advance } = freezeTime(1_000);
    let isUnavailable = true;
    const counts: RateCounts = {
      draw: () =>
        isUnavailable
          ? Promise.reject(new Error("unavailable"))
          : Promise.resolve({ tokens: 1, wait: 1 }),
    };
    const { log, lines } = createTestLog();
    const smallRate = { ...rate, burst: 2 };
    const { take } = createSharedBuckets("kind", smallRate, counts, createStoreStatus(log));
    expect(await take("a")).toBe(0);
    expect([take("a"), take("a")]).toEqual([0, 1]);
    advance(1_500);
    expect(await take("a")).toBe(0);
    isUnavailable = false;
    advance(1_500);
    expect(await take("a")).toBe(0);
    expect(lines.map(({ msg }) => msg)).toEqual([
      "shared rate limits unavailable: counting in this process only",
      "shared rate limits available again",
    ]);
  });
});

describe("an address key", () => {
  const getAddressKey = createAddressKey(createReadAddressOf([]));

  it.each([
    ["203.0.113.7", "203.0.113.7"],
    ["2001:db8:1:2::1", "20010db800010002/64"],
    ["", ""],
  ])("maps %s to %s each time", (address, expected) => {
    const peer = { address, headers: {} };
    expect([getAddressKey(peer), getAddressKey(peer)]).toEqual([expected, expected]);
  });
});
