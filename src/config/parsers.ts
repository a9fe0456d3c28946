import { readFileSync } from "node:fs";
import { defaultKeyHeader } from "../contract/headers.js";
import { isLoopback, type Network, parseNetwork } from "../lib/networks.js";
import { day, hour, minute } from "../lib/time-units.js";
import { isId } from "../lib/uuid-text.js";
import { findOriginProblem } from "../lib/web-origin.js";

/** Converts the text of a setting to a value. Throws a message that follows the setting's name. */
export interface Parser<T> {
  (text: string): T;
  /** The possible texts, if they are few. */
  readonly choices?: readonly string[];
}

export const text: Parser<string> = (text) => text;

export const port: Parser<number> = (text) => {
  const number = Number(text);
  return /^\d+$/.test(text) && number <= 65_535
    ? number
    : fail("must be a port from 0 to 65535, for example 8080");
};

export const mongoUri: Parser<string> = (text) =>
  /^mongodb(\+srv)?:\/\/./.test(text)
    ? text
    : fail("must be a MongoDB URI, for example mongodb://localhost:27017/?replicaSet=rs0");

export const databaseName: Parser<string> = (text) =>
  /^[A-Za-z0-9_-]{1,38}$/.test(text)
    ? text
    : fail("must be a database name of 1 to 38 letters, digits, - and _");

export const peppers: Parser<[string, ...string[]]> = (text) => {
  const list = text.split(",").map((pepper) => pepper.trim());
  const [first = "", ...older] = list;
  if (list.some((pepper) => pepper !== "" && pepper.length < 16)) {
    fail(
      "must be a comma-separated list of secrets, newest first, with at least 16 characters each",
    );
  }
  return [first, ...older];
};

/** Headers that HTTP or one of the RPC protocols already uses. */
const reservedHeader =
  /^(host|cookie|origin|te|expect|upgrade|connection|keep-alive|trailer|transfer-encoding|authorization|svc-guard-key|x-request-id|traceparent|tracestate|baggage|(content|accept|access|grpc|connect|sec|proxy|x-forwarded|x-original)-.*|x-latchkey-(.*-id|transform|expires-at|reason))$/i;
export const headerName: Parser<string> = (text) =>
  /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/.test(text) && !reservedHeader.test(text)
    ? text
    : fail(
        "must be an unreserved header name of letters, digits and -, " +
          `for example ${defaultKeyHeader}`,
      );

const durationUnits: Record<string, number> = { ms: 1, s: 1_000, m: minute, h: hour, d: day };

function durationUpTo(longest: string, examples: string): Parser<number> {
  return (text) => {
    const duration = parseDuration(text);
    return duration <= parseDuration(longest)
      ? duration
      : fail(`must be a duration of at most ${longest}, for example ${examples}`);
  };
}

/** A duration in a range, such as `1s` to `30d`. */
export const durationBetween =
  (shortest: string, longest: string, example: string): Parser<number> =>
  (text) => {
    const duration = parseDuration(text);
    return duration >= parseDuration(shortest) && duration <= parseDuration(longest)
      ? duration
      : fail(`must be a duration from ${shortest} to ${longest}, for example ${example}`);
  };

/** A duration in milliseconds, or NaN. */
function parseDuration(text: string): number {
  const [, number, unit = "s"] = /^([1-9]\d{0,8})(ms|s|m|h|d)?$/.exec(text) ?? [];
  return Number(number) * (durationUnits[unit] as number);
}

/** A timeout or interval. */
export const delay = durationUpTo("24h", "500ms, 30s or 5m");
/** The lifetime of stored data. */
export const lifetime = durationUpTo("3650d", "3m, 1h or 30d");

/** The default burst, in seconds at the configured rate. */
const defaultBurstSeconds = 2;
export const rate: Parser<Rate | "off"> = (text) => {
  if (text === "off") {
    return "off";
  }
  const [, count, unit = "s", burst] =
    /^([1-9]\d{0,8})\/([smh])(?::([1-9]\d{0,8}))?$/.exec(text) ??
    fail("must be off or a rate, for example 100/s, 100/m, 100/h, or 100/s:500 for bursts of 500");
  const rate = { count: Number(count), interval: durationUnits[unit] as number };
  const defaultBurst = Math.ceil((defaultBurstSeconds * 1_000 * rate.count) / rate.interval);
  return { ...rate, burst: burst === undefined ? defaultBurst : Number(burst) };
};

const sizeUnits: Record<string, number> = { b: 1, kb: 1024, mb: 1024 * 1024 };
const smallestSize = 1024;

export function sizeUpTo(largest: string): Parser<number> {
  return (text) => {
    const bytes = parseBytes(text);
    return bytes >= smallestSize && bytes <= parseBytes(largest)
      ? bytes
      : fail(`must be a size from 1kb to ${largest}, for example ${largest}`);
  };
}

function parseBytes(text: string): number {
  const [, number, unit = "b"] = /^([1-9]\d{0,8})(b|kb|mb)?$/.exec(text.toLowerCase()) ?? [];
  return Number(number) * (sizeUnits[unit] as number);
}

/** A whole number in a range. The noun names the unit in the error message. */
export function count(noun: string, min: number, max: number, example: number): Parser<number> {
  return (text) => {
    const number = Number(text);
    return /^\d+$/.test(text) && number >= min && number <= max
      ? number
      : fail(`must be a number of ${noun} from ${min} to ${max}, for example ${example}`);
  };
}

export const origins: Parser<string[]> = (text) =>
  text.split(",").map((item) => {
    const origin = item.trim();
    return origin === "*" || findOriginProblem(origin) === undefined
      ? origin
      : fail(
          "must be * or a comma-separated list of origins, for example " +
            "https://app.example.com or https://*.shop.example",
        );
  });

/** The URL of the service, without a trailing slash. Tests and development need no TLS. */
export const publicUrl: Parser<string> = (text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isSecure =
    url?.protocol === "https:" || (url?.protocol === "http:" && isLoopback(url.hostname));
  return isSecure && /^https?:\/\/[^?#@\s\\]+$/i.test(text)
    ? `${url.origin}${url.pathname.replace(/\/+$/, "")}`
    : fail(
        "must be an https URL without a query, a fragment or credentials, " +
          "for example https://keys.example.com",
      );
};

export const networks: Parser<Network[]> = (text) =>
  text.split(",").map((item) => {
    const network = parseNetwork(item.trim());
    return "problem" in network
      ? fail(
          "must be a comma-separated list of networks or addresses: " +
            `"${item.trim()}" ${network.problem}`,
        )
      : network;
  });

/** Pairs of a certificate name and an application id. */
export const idsByName: Parser<ReadonlyMap<string, string>> = (text) => {
  const ids = new Map<string, string>();
  for (const item of text.split(",")) {
    const [, name = "", id = ""] = /^\s*([!-~]+)=([0-9A-Fa-f-]{36})\s*$/.exec(item) ?? [];
    if (!isId(id.toLowerCase()) || ids.has(name)) {
      fail(
        "must be a comma-separated list of different certificate names with application ids, for " +
          "example gateway.example.com=0198c8a2-7f3e-7c1d-9b5a-2f4e6d8c0b1a",
      );
    }
    ids.set(name, id.toLowerCase());
  }
  return ids;
};

/** A file that a setting names, as it was at startup. */
export interface LoadedFile {
  readonly path: string;
  readonly content: Buffer;
}

export const file: Parser<LoadedFile> = (path) => {
  try {
    return { path, content: readFileSync(path) };
  } catch {
    return fail(`must be the path of a readable file; cannot read ${path}`);
  }
};

export function oneOf<const T extends string>(...choices: T[]): Parser<T> {
  const parse: Parser<T> = (text) =>
    choices.find((choice) => choice === text) ?? fail(`must be ${list(choices)}`);
  return Object.assign(parse, { choices });
}

function list(values: readonly string[]): string {
  return `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

function fail(message: string): never {
  throw new Error(message);
}

/** A rate limit: `count` per interval, with bursts of up to `burst`. */
export interface Rate {
  readonly count: number;
  /** In milliseconds. */
  readonly interval: number;
  readonly burst: number;
}
