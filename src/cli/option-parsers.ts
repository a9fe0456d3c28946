import { InvalidArgumentError } from "commander";
import { isId } from "../ids.js";
import { count, delay, headerName, lifetime, type Parser } from "../setting-parsers.js";

/** Lets an option be read as a setting is. */
function asOption<T>(parse: Parser<T>): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidArgumentError(`It ${(error as Error).message}.`);
    }
  };
}

export const duration = asOption(lifetime);
export const timeLimit = asOption(delay);
export const header = asOption(headerName);

export const wholeNumber = (noun: string, least: number, most: number, example: number) =>
  asOption(count(noun, least, most, example));

export const id = asOption((text) => {
  if (!isId(text)) {
    throw new Error("must be a UUID");
  }
  return text;
});

export const serviceUrl = asOption((text) => {
  const { protocol, search, hash, username } = parseUrl(text);
  if (!/^https?:$/.test(protocol) || search || hash || username) {
    throw new Error("must be an address such as https://latchkey.example.com");
  }
  return text.replace(/\/+$/, "");
});

export const profileName = asOption((text) => {
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(text)) {
    throw new Error("must be a name of letters, digits, ., _ and -");
  }
  return text;
});

function parseUrl(text: string): Partial<URL> & { readonly protocol: string } {
  return URL.canParse(text) ? new URL(text) : { protocol: "" };
}

/** A moment in RFC 3339, or so far ahead. */
export const momentAhead = momentFrom((now, distance) => now + distance);
/** A moment in RFC 3339, or so long ago. */
export const momentAgo = momentFrom((now, distance) => now - distance);

const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

function momentFrom(move: (now: number, distance: number) => number): (text: string) => Date {
  return asOption((text) => {
    const date = new Date(moment.test(text) ? text : move(Date.now(), distanceIn(text)));
    if (Number.isNaN(date.getTime())) {
      throw new Error("must be a moment such as 2030-01-31T12:00:00Z, or a distance such as 30d");
    }
    return date;
  });
}

function distanceIn(text: string): number {
  try {
    return lifetime(text);
  } catch {
    return Number.NaN;
  }
}

/** Gathers what an option says each time that it is given. */
export function gather(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
