import { defaultKeyHeader } from "../contract/headers.js";
import {
  count,
  databaseName,
  delay,
  file,
  headerName,
  idsByName,
  lifetime,
  mongoUri,
  networks,
  oneOf,
  origins,
  type Parser,
  peppers,
  port,
  publicUrl,
  rate,
  sizeUpTo,
  text,
} from "./parsers.js";
import { signingKeysFile } from "./secret-scanning.js";

/** How a setting is read. */
export interface Definition {
  readonly parse: Parser<unknown>;
  /** As an operator would write it. Absent if there is none, or if it depends on the machine. */
  readonly default?: string;
  /** The option of `latchkey serve` that sets it too. Absent for secrets and limits. */
  readonly option?: SettingOption;
}

export interface SettingOption {
  readonly group: string;
  /** Stands for the value in the help, for example `port`. */
  readonly value: string;
  readonly description: string;
}

/** Bounded by the reader slots of the embedded store, which workers share. */
export const maxWorkers = 128;

const million = 1_000_000;
const acceptOrRefuse = oneOf("accept", "refuse");
const onOrOff = oneOf("on", "off");

const inGroup = (group: string) => (value: string, description: string) => ({
  option: { group, value, description },
});
const server = inGroup("Server:");
const store = inGroup("Store:");
const keys = inGroup("Keys, sessions and grants:");
const network = inGroup("Network and TLS:");

/** Every setting of the service. docs/reference/settings.md describes them. */
export const definitions = {
  HOST: { parse: text, ...server("address", "address to listen on; all by default") },
  PORT: {
    parse: port,
    default: "8080",
    ...server("port", "port to listen on; 0 picks a free one"),
  },
  WORKERS: {
    parse: count("processes", 1, maxWorkers, 4),
    ...server("count", "worker processes; one per core by default"),
  },
  // Leaves time for reading and writing, so that every response arrives within ten seconds.
  REQUEST_TIMEOUT: { parse: delay, default: "9s", ...server("time", "longest time for a call") },
  SHUTDOWN_GRACE: {
    parse: delay,
    default: "10s",
    ...server("time", "time for calls in progress to finish at shutdown"),
  },
  CONSOLE: { parse: onOrOff, default: "on", ...server("state", "web page /console") },
  LOG_LEVEL: {
    parse: oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"),
    default: "info",
    ...server("level", "lowest level to log"),
  },
  METRICS: { parse: onOrOff, default: "on", ...server("state", "metrics at /metrics") },
  METRICS_PORT: { parse: port, ...server("port", "separate port for metrics") },
  METRICS_HOST: {
    parse: text,
    default: "127.0.0.1",
    ...server("address", "address of the separate port for metrics"),
  },

  DATA_DIR: { parse: text, default: "./data", ...store("folder", "folder of the embedded store") },
  MONGODB_URI: { parse: mongoUri, ...store("uri", "use MongoDB instead of the embedded store") },
  MONGODB_DATABASE: {
    parse: databaseName,
    default: "latchkey",
    ...store("name", "name of the MongoDB database"),
  },
  MONGODB_READS: {
    parse: oneOf("linearizable", "majority"),
    default: "linearizable",
    ...store("concern", "MongoDB read concern for key lookups"),
  },
  EVENT_RETENTION: {
    parse: lifetime,
    default: "30d",
    ...store("time", "how long the audit log keeps events"),
  },
  FIRST_KEY: {
    parse: oneOf("show", "hide"),
    default: "show",
    ...store("mode", "whether the first start with an empty store prints a key"),
  },

  KEY_HEADER: {
    parse: headerName,
    default: defaultKeyHeader,
    ...keys("name", "header that carries the key"),
  },
  // Other users of the machine can see options.
  KEY_PEPPER: { parse: peppers },
  BEARER_KEYS: {
    parse: acceptOrRefuse,
    default: "refuse",
    ...keys("mode", "keys in Authorization: Bearer, for every method"),
  },
  IMPORTED_KEYS: {
    parse: acceptOrRefuse,
    default: "refuse",
    ...keys("mode", "imported keys of another system"),
  },
  SECRET_SCANNING_KEYS: {
    parse: signingKeysFile,
    ...keys("file", "public keys of GitHub secret scanning, as JSON"),
  },
  SESSION_TTL: { parse: lifetime, default: "180s", ...keys("time", "lifetime of a session") },
  SESSION_MAX_TTL: {
    parse: lifetime,
    default: "30d",
    ...keys("time", "longest lifetime that an authorize call can set"),
  },
  SESSION_QUOTA: {
    parse: count("sessions", 1, million, 10_000),
    default: "10000",
    ...keys("count", "authorized sessions per public application"),
  },
  UNAUTHORIZED_SESSION_QUOTA: {
    parse: count("sessions", 1, million, 10_000),
    default: "10000",
    ...keys("count", "sessions per public application that wait for authorization"),
  },
  GRANT_POLICY: {
    parse: oneOf("held", "open"),
    default: "held",
    ...keys("policy", "permissions that callers can grant, only those they hold or any"),
  },

  PUBLIC_URL: { parse: publicUrl, ...network("url", "URL of the service for its clients") },
  CORS_ORIGINS: {
    parse: origins,
    ...network("origins", "web origins that may call the service, comma-separated"),
  },
  TRUSTED_PROXIES: {
    parse: networks,
    ...network("networks", "networks of your proxies, comma-separated"),
  },
  TLS_CERT: { parse: file, ...network("file", "PEM file with the certificate") },
  TLS_KEY: { parse: file, ...network("file", "PEM file with the private key") },
  TLS_CLIENT_CA: {
    parse: file,
    ...network("file", "PEM file; only clients with a certificate of this authority are served"),
  },
  GATEWAY_CERTIFICATES: {
    parse: idsByName,
    ...network("pairs", "client certificates of gateways: name=application-id, comma-separated"),
  },
  GATEWAY_ROUTES: {
    parse: file,
    ...network("file", "YAML or JSON file with the routes of gateways"),
  },

  // Above the traffic of all browsers behind one address.
  RATE_LIMIT_PUBLIC: { parse: rate, default: "10000/s" },
  // Above the capacity of a process, so that backends meet no limit by default.
  RATE_LIMIT_PRIVATE: { parse: rate, default: "500000/s" },
  RATE_LIMIT_MANAGEMENT: { parse: rate, default: "500000/s" },
  // What a busy office behind one address needs.
  RATE_LIMIT_SESSIONS: { parse: rate, default: "50/s:500" },
  // Its default depends on the number of processes.
  RATE_LIMIT_FAILURES: { parse: rate },
  RATE_LIMIT_SCOPE: { parse: oneOf("process", "shared"), default: "process" },

  GRANTS_LIMIT: { parse: sizeUpTo("1mb"), default: "64kb" },
  BODY_LIMIT: { parse: sizeUpTo("64mb"), default: "1mb" },
  BODY_BUDGET: { parse: sizeUpTo("4096mb"), default: "32mb" },
  RESPONSE_BUDGET: { parse: sizeUpTo("4096mb"), default: "64mb" },
  HEADER_LIMIT: { parse: sizeUpTo("64kb"), default: "16kb" },
  HEADER_COUNT_LIMIT: { parse: count("headers", 10, 1_000, 50), default: "100" },
  URL_LIMIT: { parse: sizeUpTo("64kb"), default: "8kb" },
  JSON_DEPTH_LIMIT: { parse: count("levels", 8, 1_000, 32), default: "32" },
  LIST_LIMIT: { parse: count("items", 100, 100_000, 1_000), default: "10000" },
  // Timeouts are checked every two seconds. Slow clients must be disconnected
  // within 10 seconds (headers) and 30 seconds (body).
  HEADER_TIMEOUT: { parse: delay, default: "7s" },
  BODY_TIMEOUT: { parse: delay, default: "25s" },
  IDLE_TIMEOUT: { parse: delay, default: "65s" },
  CONNECTION_LIMIT: { parse: count("connections", 1, million, 5_000), default: "10000" },
  ADDRESS_CONNECTION_LIMIT: { parse: count("connections", 1, million, 500), default: "1000" },
  HTTP2_STREAM_LIMIT: { parse: count("concurrent calls", 1, 250, 100), default: "128" },
  CALL_LIMIT: { parse: count("calls", 1, million, 5_000), default: "10000" },
  CALLER_STREAM_LIMIT: { parse: count("streams", 1, million, 100), default: "1000" },
} as const satisfies Readonly<Record<string, Definition>>;

export type SettingName = keyof typeof definitions;

type Parsed<Name extends SettingName> = ReturnType<(typeof definitions)[Name]["parse"]>;

/** The value of a setting. `undefined` only if it has no default. */
type SettingValue<Name extends SettingName> = (typeof definitions)[Name] extends {
  readonly default: string;
}
  ? Parsed<Name>
  : Parsed<Name> | undefined;

/** The default of a setting. The same object each time. */
export function defaultOf<Name extends SettingName>(name: Name): SettingValue<Name> {
  return defaults.get(name) as SettingValue<Name>;
}

const defaults = new Map<string, unknown>(
  Object.entries<Definition>(definitions).map(([name, { parse, default: written }]) => [
    name,
    written === undefined ? undefined : parse(written),
  ]),
);

/** Reads settings and collects their problems. */
export interface SettingReader {
  /** The value of a setting, or its default if it is unset, empty or invalid. */
  <Name extends SettingName>(name: Name): SettingValue<Name>;
  isSet(name: SettingName): boolean;
  /** The problems found so far. Callers may add to them. */
  readonly problems: string[];
}

export function createSettingReader(environment: Readonly<NodeJS.Dict<string>>): SettingReader {
  const problems: string[] = [];
  const isSet = (name: SettingName) => (environment[name] ?? "") !== "";
  function read<Name extends SettingName>(name: Name): SettingValue<Name> {
    if (isSet(name)) {
      try {
        return definitions[name].parse(environment[name] ?? "") as SettingValue<Name>;
      } catch (error) {
        problems.push(`${name} ${(error as Error).message}`);
      }
    }
    return defaultOf(name);
  }
  return Object.assign(read, { isSet, problems });
}
