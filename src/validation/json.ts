import { invalidRequest } from "../errors.js";
import { asBuffer } from "../lib/bytes.js";

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;

/** The maximum number of array items or object members. No valid message has as many. */
const maxMembers = 5_000;

/** Counts from one pass over the bytes of a JSON document. */
interface JsonScan {
  readonly isAscii: boolean;
  readonly quotes: number;
  /** Opening brackets and braces, including those in strings. */
  readonly openings: number;
  /** Commas, including those in strings. */
  readonly commas: number;
}

export function scanJson(bytes: Uint8Array): JsonScan {
  let quotes = 0;
  let bits = 0;
  let openings = 0;
  let commas = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] as number;
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

/** Whether the counts alone prove that a document is within the limits of {@link findExcess}. */
export function isWithinLimits({ openings, commas }: JsonScan, levels: number): boolean {
  return openings <= levels && commas < maxMembers;
}

/** Reports nesting deeper than `levels`, or too many members, before the document is parsed. */
export function findExcess(bytes: Uint8Array, levels: number): string | undefined {
  /** The commas seen so far in each open bracket. */
  const commas: number[] = [];
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] as number;
    if (byte === quote) {
      index = endOfString(bytes, index);
    } else if (byte === comma) {
      const count = (commas.pop() ?? 0) + 1;
      if (count >= maxMembers) {
        return `contains an array or object with more than ${maxMembers} members`;
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

/** The position of the closing quote of the string that starts at `start`. */
function endOfString(bytes: Uint8Array, start: number): number {
  let index = start + 1;
  while (index < bytes.length && bytes[index] !== quote) {
    index += bytes[index] === backslash ? 2 : 1;
  }
  return index;
}

/** Square brackets and curly braces differ in one bit. */
function isOpening(byte: number): boolean {
  return (byte | 0x20) === 0x7b;
}

function isClosing(byte: number): boolean {
  return (byte | 0x20) === 0x7d;
}

export function asciiText(bytes: Uint8Array): string {
  return asBuffer(bytes).toString("latin1");
}

/**
 * Whether a parsed document certainly has no duplicate keys. `JSON.parse` keeps
 * the last of them, so the value then has fewer strings than the document has
 * pairs of quotes. Returns false if unsure: for escaped quotes and deep values.
 */
export function hasNoDuplicateKeys({ quotes }: JsonScan, value: unknown, levels: number): boolean {
  return 2 * countStrings(value, levels) === quotes;
}

function countStrings(value: unknown, levels: number): number {
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
      count += countStrings(item, levels - 1);
    }
  } else {
    for (const name in value) {
      count += 1 + countStrings((value as Record<string, unknown>)[name], levels - 1);
    }
  }
  return count;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a JSON body more strictly than `JSON.parse`. It refuses invalid UTF-8,
 * duplicate keys and deep nesting, because two parsers may read them as two
 * different requests. It also refuses documents that are slow to parse.
 */
export function parseJson(bytes: Uint8Array, maxDepth: number): unknown {
  const scan = scanJson(bytes);
  const excess = isWithinLimits(scan, maxDepth) ? undefined : findExcess(bytes, maxDepth);
  if (excess !== undefined) {
    throw invalidRequest({ field: "request", message: excess });
  }
  const text = scan.isAscii ? asciiText(bytes) : decode(bytes);
  const value = parse(text);
  if (!hasNoDuplicateKeys(scan, value, maxDepth)) {
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

/** Strings, keys and brackets of valid JSON. */
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
    throw invalidRequest({ field: name, message: "is duplicated: send it once" });
  }
  names?.add(name);
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
