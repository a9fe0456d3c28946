import { availableParallelism } from "node:os";
import type { Network } from "../lib/networks.js";
import { createSettingReader, defaultOf, maxWorkers, type SettingReader } from "./definitions.js";
import { type Limits, type RateLimitSettings, readLimits, readRateLimits } from "./limits.js";
import type { LoadedFile } from "./parsers.js";
import { readTls, type TlsSettings } from "./tls.js";

/** The version in package.json. */
export const version = "0.1.0";

/** The validated settings of the service. Times are in milliseconds. */
export interface Settings {
  readonly host: string | undefined;
  readonly port: number;
  /** Number of worker processes. */
  readonly workers: number;
  readonly store: StoreSettings;
  /** Newest first. The empty string means no pepper. */
  readonly peppers: readonly [string, ...string[]];
  /** The header that carries the key, spelled as in responses. */
  readonly keyHeader: string;
  /** Whether every method accepts the key as a bearer token too. */
  readonly bearerKeys: boolean;
  /** The ids of applications by the names in the client certificates of gateways. */
  readonly gatewayCertificates: ReadonlyMap<string, string>;
  /** The file with the routes of gateways. */
  readonly gatewayRoutes: LoadedFile | undefined;
  readonly sessionTtl: number;
  readonly sessionMaxTtl: number;
  /** Default limit of authorized sessions per public application. */
  readonly sessionQuota: number;
  /** Limit of unauthorized sessions per public application. */
  readonly unauthorizedSessionQuota: number;
  /** How long events are stored. */
  readonly eventRetention: number;
  /** Whether imported keys in another system's format are accepted. */
  readonly importedKeys: boolean;
  /** The file with the keys of secret scanning, or `undefined` if its reports are not accepted. */
  readonly secretScanning: LoadedFile | undefined;
  readonly grantPolicy: GrantPolicy;
  /** The most bytes that the grants of one application or session take. */
  readonly grantsLimit: number;
  /** The URL of the service for its clients, without a trailing slash. */
  readonly publicUrl: string | undefined;
  readonly corsOrigins: readonly string[];
  /** Proxies whose `X-Forwarded-For` header is trusted. */
  readonly trustedProxies: readonly Network[];
  readonly tls: TlsSettings | undefined;
  /** Whether the first start on an empty embedded store creates and prints a key. */
  readonly printsFirstKey: boolean;
  /** Whether the web console is served. */
  readonly hasConsole: boolean;
  readonly logLevel: string;
  /** `undefined` if metrics are off. */
  readonly metrics: MetricsSettings | undefined;
  readonly bodyLimit: number;
  readonly limits: Limits;
  readonly requestTimeout: number;
  readonly shutdownGrace: number;
  readonly rateLimits: RateLimitSettings;
}

export interface MetricsSettings {
  /** A separate port for metrics. If `undefined`, the service port serves them. */
  readonly port: number | undefined;
  readonly host: string;
}

export type StoreSettings =
  | {
      readonly kind: "mongodb";
      readonly uri: string;
      readonly database: string;
      readonly reads: ReadMode;
    }
  | { readonly kind: "embedded"; readonly dataDir: string };

/** `held`: callers can grant only permissions that they hold. `open`: no such check. */
export type GrantPolicy = "held" | "open";

export type Environment = Readonly<NodeJS.Dict<string>>;

/** Invalid settings. The message has one line per problem. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(readonly problems: readonly string[]) {
    super(problems.join("\n"));
  }
}

/** Reads settings from environment variables. Throws one error with all problems. */
export function readSettings(environment: Environment = process.env): Settings {
  const read = createSettingReader(environment);
  const processes = read("WORKERS") ?? Math.min(availableParallelism(), maxWorkers);
  const settings: Settings = {
    host: read("HOST"),
    port: read("PORT"),
    workers: processes,
    store: readStore(read),
    peppers: read("KEY_PEPPER") ?? [""],
    keyHeader: read("KEY_HEADER"),
    bearerKeys: read("BEARER_KEYS") === "accept",
    gatewayCertificates: read("GATEWAY_CERTIFICATES") ?? new Map(),
    gatewayRoutes: read("GATEWAY_ROUTES"),
    sessionTtl: read("SESSION_TTL"),
    sessionMaxTtl: read("SESSION_MAX_TTL"),
    sessionQuota: read("SESSION_QUOTA"),
    unauthorizedSessionQuota: read("UNAUTHORIZED_SESSION_QUOTA"),
    eventRetention: read("EVENT_RETENTION"),
    importedKeys: read("IMPORTED_KEYS") === "accept",
    secretScanning: read("SECRET_SCANNING_KEYS"),
    grantPolicy: read("GRANT_POLICY"),
    grantsLimit: read("GRANTS_LIMIT"),
    publicUrl: read("PUBLIC_URL"),
    corsOrigins: read("CORS_ORIGINS") ?? [],
    trustedProxies: read("TRUSTED_PROXIES") ?? [],
    tls: readTls(read),
    printsFirstKey: read("FIRST_KEY") === "show",
    hasConsole: read("CONSOLE") === "on",
    logLevel: read("LOG_LEVEL"),
    metrics: readMetrics(read),
    bodyLimit: read("BODY_LIMIT"),
    limits: readLimits(read),
    requestTimeout: read("REQUEST_TIMEOUT"),
    shutdownGrace: read("SHUTDOWN_GRACE"),
    rateLimits: readRateLimits(read, processes),
  };
  if (settings.gatewayCertificates.size > 0 && !settings.tls?.files.clientCa) {
    read.problems.push(
      "GATEWAY_CERTIFICATES needs TLS_CLIENT_CA: set both, or unset GATEWAY_CERTIFICATES",
    );
  }
  if (settings.rateLimits.shared && settings.store.kind !== "mongodb") {
    read.problems.push(
      "RATE_LIMIT_SCOPE=shared needs MongoDB: set MONGODB_URI, or use RATE_LIMIT_SCOPE=process",
    );
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
  const uri = read("MONGODB_URI");
  const database = read("MONGODB_DATABASE");
  const reads = read("MONGODB_READS");
  const dataDir = read("DATA_DIR");
  return uri === undefined
    ? { kind: "embedded", dataDir }
    : { kind: "mongodb", uri, database, reads };
}

/** A separate metrics port listens on loopback by default. */
function readMetrics(read: SettingReader): Settings["metrics"] {
  const isOff = read("METRICS") === "off";
  const metrics = { port: read("METRICS_PORT"), host: read("METRICS_HOST") };
  if (read.isSet("METRICS_HOST") && !read.isSet("METRICS_PORT")) {
    read.problems.push("METRICS_HOST needs METRICS_PORT: set both, or unset METRICS_HOST");
  }
  return isOff ? undefined : metrics;
}

export const defaultEventRetention = defaultOf("EVENT_RETENTION");

/**
 * The MongoDB read concern. A majority read can be stale: a partitioned or
 * frozen primary may have been replaced, and a new primary may not have applied
 * every acknowledged write yet. A linearizable read returns only after a
 * majority has confirmed the primary and the data.
 */
export type ReadMode = "linearizable" | "majority";
