import { availableParallelism } from "node:os";
import { defaultKeyHeader } from "../contract/headers.js";
import type { Network } from "../lib/networks.js";
import type { Limits } from "./limits.js";
import { readLimits } from "./limits.js";
import {
  count,
  createSettingReader,
  databaseName,
  delay,
  headerName,
  lifetime,
  mongoUri,
  networks,
  oneOf,
  origins,
  peppers,
  port,
  type SettingReader,
  sizeUpTo,
  text,
} from "./parsers.js";
import { type RateLimitSettings, readRateLimits } from "./rate-limits.js";
import { readTls, type TlsSettings } from "./tls.js";

/** Everything an operator can set, checked and frozen. */
export interface Settings {
  readonly host: string | undefined;
  readonly port: number;
  /** How many processes serve. */
  readonly workers: number;
  readonly store: StoreSettings;
  /** Newest first; the empty text stands for no pepper. */
  readonly peppers: readonly [string, ...string[]];
  /** The header that carries the key, in the spelling that answers use. */
  readonly keyHeader: string;
  readonly sessionTtl: number;
  readonly sessionMaxTtl: number;
  /** How many sessions a public application may have open at once, unless its record says otherwise. */
  readonly sessionQuota: number;
  /** How long events are kept. */
  readonly eventRetention: number;
  /** Whether keys that were made elsewhere, and imported, are looked up. */
  readonly foreignKeys: boolean;
  readonly grantPolicy: GrantPolicy;
  readonly corsOrigins: readonly string[];
  /** Those whose word is taken for where a call came from. */
  readonly trustedProxies: readonly Network[];
  readonly tls: TlsSettings | undefined;
  /** Whether the first start on an empty embedded store makes a key and shows it. */
  readonly showsFirstKey: boolean;
  /** Whether there are pages for people. */
  readonly hasConsole: boolean;
  readonly logLevel: string;
  /** Absent where nothing is counted. */
  readonly metrics: MetricsSettings | undefined;
  readonly bodyLimit: number;
  readonly limits: Limits;
  readonly requestTimeout: number;
  readonly shutdownGrace: number;
  readonly rateLimits: RateLimitSettings;
}

export interface MetricsSettings {
  /** Where they are told; on the port of the service where there is none. */
  readonly port: number | undefined;
  readonly host: string;
}

export type StoreSettings =
  | {
      readonly kind: "mongodb";
      readonly uri: string;
      readonly database: string;
      readonly reads: Reads;
    }
  | { readonly kind: "embedded"; readonly dataDir: string };

/** `held`: nobody gives what it does not hold. `open`: no such check. */
export type GrantPolicy = "held" | "open";

export type Environment = Readonly<NodeJS.Dict<string>>;

/** Settings that cannot be used; the message has a line for each problem. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(readonly problems: readonly string[]) {
    super(problems.join("\n"));
  }
}

/** They share the places for readers in an embedded store. */
const mostWorkers = 128;

/** Reads settings from environment variables, or throws all that is wrong with them at once. */
export function readSettings(environment: Environment = process.env): Settings {
  const read = createSettingReader(environment);
  const processes =
    read("WORKERS", count("processes", 1, mostWorkers, 4)) ??
    Math.min(availableParallelism(), mostWorkers);
  const settings: Settings = {
    host: read("HOST", text),
    port: read("PORT", port) ?? 8080,
    workers: processes,
    store: readStore(read),
    peppers: read("KEY_PEPPER", peppers) ?? [""],
    keyHeader: read("KEY_HEADER", headerName) ?? defaultKeyHeader,
    sessionTtl: read("SESSION_TTL", lifetime) ?? 180_000,
    sessionMaxTtl: read("SESSION_MAX_TTL", lifetime) ?? 30 * 24 * 3_600_000,
    sessionQuota: read("SESSION_QUOTA", count("sessions", 1, 1_000_000, 10_000)) ?? 10_000,
    eventRetention: read("EVENT_RETENTION", lifetime) ?? defaultEventRetention,
    foreignKeys: read("FOREIGN_KEYS", oneOf("accept", "refuse")) === "accept",
    grantPolicy: read("GRANT_POLICY", oneOf("held", "open")) ?? "held",
    corsOrigins: read("CORS_ORIGINS", origins) ?? [],
    trustedProxies: read("TRUSTED_PROXIES", networks) ?? [],
    tls: readTls(read),
    showsFirstKey: read("FIRST_KEY", oneOf("show", "hide")) !== "hide",
    hasConsole: read("CONSOLE", oneOf("on", "off")) !== "off",
    logLevel:
      read("LOG_LEVEL", oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent")) ??
      "info",
    metrics: readMetrics(read),
    bodyLimit: read("BODY_LIMIT", sizeUpTo("64mb")) ?? 1024 * 1024,
    limits: readLimits(read),
    requestTimeout: read("REQUEST_TIMEOUT", delay) ?? usualRequestTimeout,
    shutdownGrace: read("SHUTDOWN_GRACE", delay) ?? 10_000,
    rateLimits: readRateLimits(read, processes),
  };
  if (settings.rateLimits.areShared && settings.store.kind !== "mongodb") {
    read.problems.push("RATE_LIMIT_SCOPE=shared needs MONGODB_URI: processes count together there");
  }
  if (settings.sessionMaxTtl < settings.sessionTtl) {
    read.problems.push("SESSION_MAX_TTL must be at least as long as SESSION_TTL");
  }
  if (settings.limits.bodyBudget < settings.bodyLimit) {
    read.problems.push("BODY_BUDGET must be at least as large as BODY_LIMIT");
  }
  if (read.problems.length > 0) {
    throw new ConfigError(read.problems);
  }
  return Object.freeze(settings);
}

function readStore(read: SettingReader): StoreSettings {
  const uri = read("MONGODB_URI", mongoUri);
  const database = read("MONGODB_DATABASE", databaseName) ?? "latchkey";
  const reads = read("MONGODB_READS", oneOf("linearizable", "majority")) ?? "linearizable";
  const dataDir = read("DATA_DIR", text) ?? "./data";
  return uri === undefined
    ? { kind: "embedded", dataDir }
    : { kind: "mongodb", uri, database, reads };
}

/** A port of their own is open to this machine alone, unless it is said otherwise. */
function readMetrics(read: SettingReader): Settings["metrics"] {
  const isOff = read("METRICS", oneOf("on", "off")) === "off";
  const metrics = {
    port: read("METRICS_PORT", port),
    host: read("METRICS_HOST", text) ?? "127.0.0.1",
  };
  if (read.isSet("METRICS_HOST") && !read.isSet("METRICS_PORT")) {
    read.problems.push("METRICS_HOST goes with METRICS_PORT: set both, or METRICS_PORT alone");
  }
  return isOff ? undefined : metrics;
}

/** So that a call that is answered is answered within ten seconds, with all that comes before and after it. */
const usualRequestTimeout = 9_000;

/** How long events are kept where the operator does not say, in milliseconds. */
export const defaultEventRetention = 30 * 24 * 3_600_000;

/**
 * How a read makes sure that it sees all that was acknowledged before it
 * began. A primary may have been replaced and not know it yet, as when it was
 * cut off from its peers or frozen for a while; one that was just elected may
 * not know yet what the one before had acknowledged. A majority read believes
 * both. A linearizable one is answered only once a majority has confirmed that
 * the primary still is one and that they have what was read.
 */
export type Reads = "linearizable" | "majority";
