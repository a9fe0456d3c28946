import type { Rate, SettingReader } from "./parsers.js";
import { oneOf, rate } from "./parsers.js";

/** How often keys may be used, by their kind, and how many wrong ones an address may send. What is absent has no limit. */
export interface RateLimitSettings {
  readonly public: Rate | undefined;
  readonly private: Rate | undefined;
  readonly management: Rate | undefined;
  readonly failures: Rate | undefined;
  /** Whether all processes that share the store count together. */
  readonly areShared: boolean;
}

/** More calls, and checks in batches, than a process can answer, so that no backend meets a limit that nobody has set. */
const usualRate: Rate = { count: 500_000, interval: 1_000, burst: 1_000_000 };
/** More than all browsers behind one address should make of one key, and than most loads are. */
const usualPublicRate: Rate = { count: 10_000, interval: 1_000, burst: 20_000 };

/** How many wrong keys an address may send to one process at once, and then each second. */
const usualFailures = { burst: 200, count: 10 };
/**
 * How many processes may each take as many as one alone. More share what these
 * take together, 600 at once: whoever tries a thousand keys is slowed down,
 * among however many processes they are spread.
 */
const fullShares = 3;

function usualFailuresAmong(processes: number): Rate {
  const sharers = Math.max(1, processes / fullShares);
  const { count, burst } = usualFailures;
  return { count, interval: sharers * 1_000, burst: Math.floor(burst / sharers) };
}

/** Reads the limits of each of so many processes. */
export function readRateLimits(read: SettingReader, processes: number): RateLimitSettings {
  const orNone = (limit: Rate | "off") => (limit === "off" ? undefined : limit);
  return {
    public: orNone(read("RATE_LIMIT_PUBLIC", rate) ?? usualPublicRate),
    private: orNone(read("RATE_LIMIT_PRIVATE", rate) ?? usualRate),
    management: orNone(read("RATE_LIMIT_MANAGEMENT", rate) ?? usualRate),
    failures: orNone(read("RATE_LIMIT_FAILURES", rate) ?? usualFailuresAmong(processes)),
    areShared: read("RATE_LIMIT_SCOPE", oneOf("process", "shared")) === "shared",
  };
}
