import type { Rate } from "./parsers.js";
import { count, delay, oneOf, rate, type SettingReader, sizeUpTo } from "./parsers.js";

/** Resource limits per request, connection, client and process. Times are in milliseconds. */
export interface Limits {
  /** Bytes of all request headers. */
  readonly headerSize: number;
  readonly headerCount: number;
  /** Bytes of all request bodies in memory. */
  readonly bodyBudget: number;
  /** Bytes of the path and query. */
  readonly urlSize: number;
  /** Nesting levels of JSON. */
  readonly jsonDepth: number;
  /** Items of all lists in a request, nested ones included. */
  readonly listItems: number;
  /** Time to receive the request headers, and for a new connection to send its first request. */
  readonly headerTimeout: number;
  /** Time to receive a request, and for a client to read its response. */
  readonly bodyTimeout: number;
  /** Time that a connection may be idle. */
  readonly idleTimeout: number;
  /** Open connections per process. */
  readonly connections: number;
  /** Open connections per client address. */
  readonly connectionsPerAddress: number;
  /** Concurrent calls per HTTP/2 connection. */
  readonly http2Streams: number;
  /** Calls in flight per process, without streams. */
  readonly calls: number;
  /** Open streams per caller. */
  readonly streams: number;
}

const million = 1_000_000;

export function readLimits(read: SettingReader): Limits {
  const limits = {
    headerSize: read("HEADER_LIMIT", sizeUpTo("64kb")) ?? 16 * 1024,
    headerCount: read("HEADER_COUNT_LIMIT", count("headers", 10, 1_000, 50)) ?? 100,
    bodyBudget: read("BODY_BUDGET", sizeUpTo("4096mb")) ?? 32 * 1024 * 1024,
    urlSize: read("URL_LIMIT", sizeUpTo("64kb")) ?? 8 * 1024,
    jsonDepth: read("JSON_DEPTH_LIMIT", count("levels", 8, 1_000, 32)) ?? 32,
    listItems: read("LIST_LIMIT", count("items", 100, 100_000, 1_000)) ?? 10_000,
    // Timeouts are checked every two seconds. Slow clients must be disconnected
    // within 10 seconds (headers) and 30 seconds (body).
    headerTimeout: read("HEADER_TIMEOUT", delay) ?? 7_000,
    bodyTimeout: read("BODY_TIMEOUT", delay) ?? 25_000,
    idleTimeout: read("IDLE_TIMEOUT", delay) ?? 65_000,
    connections: read("CONNECTION_LIMIT", count("connections", 1, million, 5_000)) ?? 10_000,
    connectionsPerAddress:
      read("ADDRESS_CONNECTION_LIMIT", count("connections", 1, million, 500)) ?? 1_000,
    http2Streams: read("HTTP2_STREAM_LIMIT", count("concurrent calls", 1, 250, 100)) ?? 128,
    calls: read("CALL_LIMIT", count("calls", 1, million, 5_000)) ?? 10_000,
    streams: read("CALLER_STREAM_LIMIT", count("streams", 1, million, 100)) ?? 1_000,
  };
  if (limits.bodyTimeout < limits.headerTimeout) {
    read.problems.push("BODY_TIMEOUT must be at least as long as HEADER_TIMEOUT");
  }
  return Object.freeze(limits);
}

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

/** Whether the operator did not set a rate. */
export function isDefaultRate(rate: Rate): boolean {
  return rate === defaultRate || rate === defaultPublicRate;
}

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
