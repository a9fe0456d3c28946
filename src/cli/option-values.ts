import { InvalidArgumentError } from "commander";
import {
  count,
  delay,
  durationBetween,
  headerName,
  lifetime,
  type Parser,
} from "../config/parsers.js";
import { isId } from "../lib/uuid-text.js";
import { CommandError } from "./errors.js";

/** Makes commander report what a parser of settings throws. */
function optionParser<T>(parse: Parser<T>): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidArgumentError(`It ${(error as Error).message}.`);
    }
  };
}

/** Parses a text that is not an option. Commander reports errors of options itself. */
export function parseText<T>(name: string, parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (error) {
    throw new CommandError(`${name}: ${(error as Error).message}`, "usage");
  }
}

export const parseTimeout = optionParser(delay);
export const parseHeaderName = optionParser(headerName);

export const durationParser = (shortest: string, longest: string, example: string) =>
  optionParser(durationBetween(shortest, longest, example));

export const wholeNumberParser = (noun: string, min: number, max: number, example: number) =>
  optionParser(count(noun, min, max, example));

export const parseId = optionParser((text) => {
  if (!isId(text)) {
    throw new Error("must be a UUID");
  }
  return text;
});

export const parseServiceUrl = optionParser((text) => {
  const { protocol, search, hash, username } = parseUrl(text);
  if (!/^https?:$/.test(protocol) || search || hash || username) {
    throw new Error("must be a URL such as https://latchkey.example.com");
  }
  return text.replace(/\/+$/, "");
});

export const parseProfileName = optionParser((text) => {
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(text)) {
    throw new Error("must be a name of letters, digits, ., _ and -");
  }
  return text;
});

function parseUrl(text: string): Partial<URL> & { readonly protocol: string } {
  return URL.canParse(text) ? new URL(text) : { protocol: "" };
}

/** An RFC 3339 time, or a duration from now. */
export const parseFutureTime = timeParser((now, duration) => now + duration);
/** An RFC 3339 time, or a duration before now. */
export const parsePastTime = timeParser((now, duration) => now - duration);

/** With a space instead of the T, as times are printed. */
const rfc3339 = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

function timeParser(relativeTo: (now: number, duration: number) => number): (text: string) => Date {
  return optionParser((text) => {
    const date = new Date(
      rfc3339.test(text) ? text.replace(" ", "T") : relativeTo(Date.now(), durationIn(text)),
    );
    if (Number.isNaN(date.getTime())) {
      throw new Error("must be a time such as 2030-01-31T12:00:00Z, or a duration such as 30d");
    }
    return date;
  });
}

function durationIn(text: string): number {
  try {
    return lifetime(text);
  } catch {
    return Number.NaN;
  }
}

/** Collects the values of an option that may be repeated. */
export function collect(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
