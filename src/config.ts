import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { createSecureContext } from "node:tls";
import { defaultKeyHeader } from "./key-header.js";
import { type Network, readNetwork } from "./networks.js";
import { defaultEventRetention } from "./store/events.js";
import { originOf } from "./web-origin.js";

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
  readonly sessionMaxTtl: number | undefined;
  /** How long events are kept. */
  readonly eventRetention: number;
  /** Whether keys that were made elsewhere, and imported, are looked up. */
  readonly foreignKeys: boolean;
  readonly grantPolicy: GrantPolicy;
  readonly corsOrigins: readonly string[];
  /** Those whose word is taken for where a call came from. */
  readonly trustedProxies: readonly Network[];
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  readonly logLevel: string;
  readonly bodyLimit: number;
  readonly requestTimeout: number;
  readonly shutdownGrace: number;
}

export type StoreSettings =
  | { readonly kind: "mongodb"; readonly uri: string; readonly database: string }
  | { readonly kind: "embedded"; readonly dataDir: string };

/** `held`: nobody gives what it does not hold. `open`: no such check. */
export type GrantPolicy = "held" | "open";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Settings that cannot be used; the message has a line for each problem. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";

  constructor(readonly problems: readonly string[]) {
    super(problems.join("\n"));
  }
}

/** Reads settings from environment variables, or throws all that is wrong with them at once. */
export function readSettings(environment: Environment = process.env): Settings {
  const read = createReader(environment);
  const settings: Settings = {
    host: read("HOST", text),
    port: read("PORT", port) ?? 8080,
    workers: read("WORKERS", workers) ?? Math.min(availableParallelism(), mostWorkers),
    store: readStore(read),
    peppers: read("KEY_PEPPER", peppers) ?? [""],
    keyHeader: read("KEY_HEADER", headerName) ?? defaultKeyHeader,
    sessionTtl: read("SESSION_TTL", lifetime) ?? 180_000,
    sessionMaxTtl: read("SESSION_MAX_TTL", lifetime),
    eventRetention: read("EVENT_RETENTION", lifetime) ?? defaultEventRetention,
    foreignKeys: read("FOREIGN_KEYS", oneOf("accept", "refuse")) === "accept",
    grantPolicy: read("GRANT_POLICY", oneOf("held", "open")) ?? "held",
    corsOrigins: read("CORS_ORIGINS", origins) ?? [],
    trustedProxies: read("TRUSTED_PROXIES", networks) ?? [],
    tls: readTls(read),
    logLevel:
      read("LOG_LEVEL", oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent")) ??
      "info",
    bodyLimit: read("BODY_LIMIT", size) ?? 1024 * 1024,
    requestTimeout: read("REQUEST_TIMEOUT", delay) ?? 10_000,
    shutdownGrace: read("SHUTDOWN_GRACE", delay) ?? 10_000,
  };
  if (settings.sessionMaxTtl !== undefined && settings.sessionMaxTtl < settings.sessionTtl) {
    read.problems.push("SESSION_MAX_TTL must be at least as long as SESSION_TTL");
  }
  if (read.problems.length > 0) {
    throw new ConfigError(read.problems);
  }
  return Object.freeze(settings);
}

/** Turns the text of a variable into a value, or throws what the text must be. */
type Parser<T> = (text: string) => T;

interface Reader {
  /** The value of a variable, or `undefined` where it is unset, empty or wrong. */
  <T>(name: string, parse: Parser<T>): T | undefined;
  isSet(name: string): boolean;
  readonly problems: string[];
}

function createReader(environment: Environment): Reader {
  const problems: string[] = [];
  const isSet = (name: string) => (environment[name] ?? "") !== "";
  function read<T>(name: string, parse: Parser<T>): T | undefined {
    if (!isSet(name)) {
      return undefined;
    }
    try {
      return parse(environment[name] ?? "");
    } catch (error) {
      problems.push(`${name} ${(error as Error).message}`);
      return undefined;
    }
  }
  return Object.assign(read, { isSet, problems });
}

function readStore(read: Reader): StoreSettings {
  const uri = read("MONGODB_URI", mongoUri);
  const database = read("MONGODB_DATABASE", databaseName) ?? "latchkey";
  const dataDir = read("DATA_DIR", text) ?? "./data";
  return uri === undefined ? { kind: "embedded", dataDir } : { kind: "mongodb", uri, database };
}

function readTls(read: Reader): Settings["tls"] {
  const cert = read("TLS_CERT", file);
  const key = read("TLS_KEY", file);
  if (read.isSet("TLS_CERT") !== read.isSet("TLS_KEY")) {
    read.problems.push("TLS_CERT and TLS_KEY go together: set both or none");
  }
  if (!cert || !key) {
    return undefined;
  }
  try {
    createSecureContext({ cert, key });
  } catch {
    read.problems.push("TLS_CERT and TLS_KEY must be a certificate and its key, as PEM files");
  }
  return { cert, key };
}

const text: Parser<string> = (text) => text;

const port: Parser<number> = (text) => {
  const number = Number(text);
  return /^\d+$/.test(text) && number <= 65_535
    ? number
    : fail("must be a port from 0 to 65535, for example 8080");
};

/** They share the places for readers in an embedded store. */
const mostWorkers = 128;
const workers: Parser<number> = (text) => {
  const number = Number(text);
  return /^\d+$/.test(text) && number >= 1 && number <= mostWorkers
    ? number
    : fail(`must be a number of processes from 1 to ${mostWorkers}, for example 4`);
};

const mongoUri: Parser<string> = (text) =>
  /^mongodb(\+srv)?:\/\/./.test(text)
    ? text
    : fail("must be a MongoDB address, for example mongodb://localhost:27017/?replicaSet=rs0");

const databaseName: Parser<string> = (text) =>
  /^[A-Za-z0-9_-]{1,38}$/.test(text)
    ? text
    : fail("must be a database name of at most 38 letters, digits, - and _");

const peppers: Parser<[string, ...string[]]> = (text) => {
  const list = text.split(",").map((pepper) => pepper.trim());
  const [first = "", ...older] = list;
  if (list.some((pepper) => pepper !== "" && pepper.length < 16)) {
    fail("must be secrets of at least 16 characters, newest first, joined by commas");
  }
  return [first, ...older];
};

/** Headers that mean something else, to HTTP or to one of the protocols. */
const reservedHeader =
  /^(host|cookie|origin|te|expect|upgrade|connection|keep-alive|trailer|transfer-encoding|x-forwarded-for|x-request-id|(content|accept|access|grpc|connect|sec|proxy)-.*)$/i;
const headerName: Parser<string> = (text) =>
  /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/.test(text) && !reservedHeader.test(text)
    ? text
    : fail(`must be a header name of letters, digits and -, for example ${defaultKeyHeader}`);

const hour = 3_600_000;
const durationUnits: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: hour, d: 24 * hour };

function durationUpTo(hours: number): Parser<number> {
  return (text) => {
    const [, number, unit = "s"] = /^([1-9]\d{0,8})(ms|s|m|h|d)?$/.exec(text) ?? [];
    const duration = Number(number) * (durationUnits[unit] as number);
    return duration <= hours * hour
      ? duration
      : fail(`must be a time such as 180 (seconds), 500ms, 3m, 1h or 30d, at most ${hours}h`);
  };
}

/** How long to wait for something. */
const delay = durationUpTo(24);
/** How long something may last. */
const lifetime = durationUpTo(10 * 365 * 24);

const sizeUnits: Record<string, number> = { b: 1, kb: 1024, mb: 1024 * 1024 };
const smallestSize = 1024;
const largestSize = 64 * 1024 * 1024;
const size: Parser<number> = (text) => {
  const [, number, unit = "b"] = /^([1-9]\d{0,8})(b|kb|mb)?$/.exec(text.toLowerCase()) ?? [];
  const bytes = Number(number) * (sizeUnits[unit] as number);
  return bytes >= smallestSize && bytes <= largestSize
    ? bytes
    : fail("must be a size from 1kb to 64mb, for example 1mb");
};

const origins: Parser<string[]> = (text) =>
  text.split(",").map((item) => {
    const origin = item.trim();
    return origin === "*" || originOf(origin) === origin
      ? origin
      : fail("must be * or origins joined by commas, for example https://app.example.com");
  });

const networks: Parser<Network[]> = (text) =>
  text.split(",").map((item) => {
    const network = readNetwork(item.trim());
    return "fault" in network
      ? fail(`must be networks or addresses joined by commas: "${item.trim()}" ${network.fault}`)
      : network;
  });

const file: Parser<Buffer> = (path) => {
  try {
    return readFileSync(path);
  } catch {
    return fail(`names a file that cannot be read: ${path}`);
  }
};

function oneOf<const T extends string>(...values: T[]): Parser<T> {
  return (text) => values.find((value) => value === text) ?? fail(`must be ${list(values)}`);
}

function list(values: readonly string[]): string {
  return `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

function fail(message: string): never {
  throw new Error(message);
}
