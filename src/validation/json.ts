import { invalidRequest } from "../errors.js";
import { asBuffer } from "../lib/bytes.js";

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;

/** Items of a list, or fields of an object: no message may have as many. */
const mostMembers = 5_000;

/** What one look at the bytes of a JSON text tells. */
interface JsonLook {
  readonly isAscii: boolean;
  readonly quotes: number;
  /** How many brackets open, those in texts counted too. */
  readonly openings: number;
  /** How many commas there are, those in texts counted too. */
  readonly commas: number;
}

export function lookAtJson(bytes: Uint8Array): JsonLook {
  let quotes = 0;
  let bits = 0;
  let openings = 0;
  let commas = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    bits |= byte;
    if (byte === quote) {
      quotes++;
    } else if (byte === comma) {
      commas++;
    } else if (isOpening(byte)) {
      openings++;
    }
  }
  return { isAscii: bits < 0x80, quotes, openings, commas };
}

/** Whether a text surely is within the limits that {@link excessIn} looks for. */
export function surelyHasNoExcess({ openings, commas }: JsonLook, levels: number): boolean {
  return openings <= levels && commas < mostMembers;
}

/**
 * What a text has too much of to be parsed, which may cost dear: brackets in
 * each other deeper than so many levels, or members between two of them.
 */
export function excessIn(bytes: Uint8Array, levels: number): string | undefined {
  /** How many commas there are between the brackets that are open, by their level. */
  const commas: number[] = [];
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      at = endOfText(bytes, at);
    } else if (byte === comma) {
      const count = (commas.pop() ?? 0) + 1;
      if (count >= mostMembers) {
        return `has a list or an object with more than ${mostMembers} members`;
      }
      commas.push(count);
    } else if (isOpening(byte)) {
      if (commas.push(0) > levels) {
        return `is nested deeper than ${levels} levels`;
      }
    } else if (isClosing(byte)) {
      commas.pop();
    }
  }
  return undefined;
}

/** Where the quote is that ends the text which begins with the one here. */
function endOfText(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) {
    at += bytes[at] === backslash ? 2 : 1;
  }
  return at;
}

/** Square and curly ones differ in one bit. */
function isOpening(byte: number): boolean {
  return (byte | 0x20) === 0x7b;
}

function isClosing(byte: number): boolean {
  return (byte | 0x20) === 0x7d;
}

/** The text of bytes that are ASCII. */
export function asciiText(bytes: Uint8Array): string {
  return asBuffer(bytes).toString("latin1");
}

/**
 * Whether a parsed text surely gave no name twice in an object. Of those the
 * parser keeps the last, so that there are fewer texts in the value than the
 * quotes around them tell. A quote within a text makes it unsure, as does a
 * value that is nested deeper than so many levels.
 */
export function surelyHasNoTwins({ quotes }: JsonLook, value: unknown, levels: number): boolean {
  return 2 * textsIn(value, levels) === quotes;
}

function textsIn(value: unknown, levels: number): number {
  if (typeof value === "string") {
    return 1;
  }
  if (typeof value !== "object" || value === null) {
    return 0;
  }
  if (levels === 0) {
    return Number.NaN;
  }
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) {
      count += textsIn(item, levels - 1);
    }
  } else {
    for (const name in value) {
      count += 1 + textsIn((value as Record<string, unknown>)[name], levels - 1);
    }
  }
  return count;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a body of JSON more strictly than `JSON.parse`: text that is not
 * UTF-8, a name given twice in an object and deep nesting are refused, because
 * each of them can make two readers see two different requests; and so is what
 * would take long to parse.
 */
export function parseJson(bytes: Uint8Array, deepest: number): unknown {
  const look = lookAtJson(bytes);
  const excess = surelyHasNoExcess(look, deepest) ? undefined : excessIn(bytes, deepest);
  if (excess !== undefined) {
    throw invalidRequest({ field: "request", message: excess });
  }
  const text = look.isAscii ? asciiText(bytes) : decode(bytes);
  const value = parse(text);
  if (!surelyHasNoTwins(look, value, deepest)) {
    checkNames(text);
  }
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidRequest({
      field: "request",
      message: `is not valid JSON: ${lower((error as Error).message)}`,
    });
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidRequest({ field: "request", message: "is not valid UTF-8" });
  }
}

/** Strings, and the punctuation that matters, of a text that is known to be JSON. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\]]/g;

function checkNames(text: string): void {
  const open: (Set<string> | undefined)[] = [];
  for (const [part, colon] of text.matchAll(token)) {
    if (part === "{" || part === "[") {
      open.push(part === "{" ? new Set() : undefined);
    } else if (part === "}" || part === "]") {
      open.pop();
    } else if (colon !== undefined) {
      checkName(open.at(-1), part.slice(0, -colon.length));
    }
  }
}

function checkName(names: Set<string> | undefined, literal: string): void {
  const name: string = literal.includes("\\") ? JSON.parse(literal) : literal.slice(1, -1);
  if (names?.has(name)) {
    throw invalidRequest({ field: name, message: "is given twice: give it once" });
  }
  names?.add(name);
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
