import type { Rate, SettingReader } from "./parsers.js";
import { oneOf, rate } from "./parsers.js";

/** Rate limits per key by application type, and of invalid keys per address. `undefined` means no limit. */
export interface RateLimitSettings {
  readonly public: Rate | undefined;
  readonly private: Rate | undefined;
  readonly management: Rate | undefined;
  readonly failures: Rate | undefined;
  /** Whether all processes on the same store share one count. */
  readonly shared: boolean;
}

/** Above the capacity of a process, so that backends meet no limit by default. */
const defaultRate: Rate = { count: 500_000, interval: 1_000, burst: 1_000_000 };
/** Above the traffic of all browsers behind one address. */
const defaultPublicRate: Rate = { count: 10_000, interval: 1_000, burst: 20_000 };

/** Invalid keys that one address may send to one process. */
const defaultFailureRate = { burst: 200, count: 10 };
/**
 * Up to three processes each allow the full rate. More processes divide the sum
 * of three (a burst of 600), so spreading a thousand guesses over many
 * processes does not help an attacker.
 */
const fullRateProcesses = 3;

function defaultFailureRateFor(processes: number): Rate {
  const divisor = Math.max(1, processes / fullRateProcesses);
  const { count, burst } = defaultFailureRate;
  return { count, interval: divisor * 1_000, burst: Math.floor(burst / divisor) };
}

/** Reads the limits of one of several processes. */
export function readRateLimits(read: SettingReader, processes: number): RateLimitSettings {
  const orNone = (limit: Rate | "off") => (limit === "off" ? undefined : limit);
  return {
    public: orNone(read("RATE_LIMIT_PUBLIC", rate) ?? defaultPublicRate),
    private: orNone(read("RATE_LIMIT_PRIVATE", rate) ?? defaultRate),
    management: orNone(read("RATE_LIMIT_MANAGEMENT", rate) ?? defaultRate),
    failures: orNone(read("RATE_LIMIT_FAILURES", rate) ?? defaultFailureRateFor(processes)),
    shared: read("RATE_LIMIT_SCOPE", oneOf("process", "shared")) === "shared",
  };
}
