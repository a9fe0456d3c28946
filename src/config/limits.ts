import { defaultOf, type SettingReader } from "./definitions.js";
import type { Rate } from "./parsers.js";

/** Resource limits per request, connection, client and process. Times are in milliseconds. */
export interface Limits {
  /** Bytes of all request headers. */
  readonly headerSize: number;
  readonly headerCount: number;
  /** Bytes of all request bodies in memory. */
  readonly bodyBudget: number;
  /** Bytes of all responses that are built or not read yet. */
  readonly responseBudget: number;
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

export function readLimits(read: SettingReader): Limits {
  const limits = {
    headerSize: read("HEADER_LIMIT"),
    headerCount: read("HEADER_COUNT_LIMIT"),
    bodyBudget: read("BODY_BUDGET"),
    responseBudget: read("RESPONSE_BUDGET"),
    urlSize: read("URL_LIMIT"),
    jsonDepth: read("JSON_DEPTH_LIMIT"),
    listItems: read("LIST_LIMIT"),
    headerTimeout: read("HEADER_TIMEOUT"),
    bodyTimeout: read("BODY_TIMEOUT"),
    idleTimeout: read("IDLE_TIMEOUT"),
    connections: read("CONNECTION_LIMIT"),
    connectionsPerAddress: read("ADDRESS_CONNECTION_LIMIT"),
    http2Streams: read("HTTP2_STREAM_LIMIT"),
    calls: read("CALL_LIMIT"),
    streams: read("CALLER_STREAM_LIMIT"),
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
  /** Sessions that are opened, per application and address. */
  readonly create_session: Rate | undefined;
  /** Whether all processes on the same store share one count. */
  readonly shared: boolean;
}

const keyRates = ["RATE_LIMIT_PUBLIC", "RATE_LIMIT_PRIVATE", "RATE_LIMIT_MANAGEMENT"] as const;

/** Whether the rate of a key is the default one. A rate that the operator set is another object, even if it is equal. */
export function isDefaultRate(rate: Rate): boolean {
  return keyRates.some((name) => rate === defaultOf(name));
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
    public: orNone(read("RATE_LIMIT_PUBLIC")),
    private: orNone(read("RATE_LIMIT_PRIVATE")),
    management: orNone(read("RATE_LIMIT_MANAGEMENT")),
    create_session: orNone(read("RATE_LIMIT_SESSIONS")),
    failures: orNone(read("RATE_LIMIT_FAILURES") ?? defaultFailureRateFor(processes)),
    shared: read("RATE_LIMIT_SCOPE") === "shared",
  };
}
