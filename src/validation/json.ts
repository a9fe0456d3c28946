import { invalidRequest } from "../errors.js";

const quote = 0x22;
const comma = 0x2c;
const backslash = 0x5c;

/** The maximum number of array items or object members. No valid message has as many. */
const maxMembers = 5_000;

/**
 * Counts the strings in a JSON document, names included. Throws before it is parsed
 * if it is nested deeper than `levels` or has too many members.
 */
export function scanJson(bytes: Uint8Array, levels: number): number {
  let strings = 0;
  /** The commas seen so far in each open bracket. */
  const commas: number[] = [];
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] as number;
    if (byte === quote) {
      strings++;
      index = endOfString(bytes, index);
    } else if (byte === comma) {
      const count = (commas.pop() ?? 0) + 1;
      if (count >= maxMembers) {
        throw invalid(`contains an array or object with more than ${maxMembers} members`);
      }
      commas.push(count);
    } else if (isOpening(byte)) {
      if (commas.push(0) > levels) {
        throw invalid(`is nested deeper than ${levels} levels`);
      }
    } else if (isClosing(byte)) {
      commas.pop();
    }
  }
  return strings;
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

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a JSON body more strictly than `JSON.parse`. It refuses invalid UTF-8,
 * duplicate names and deep nesting, because two parsers may read them as two
 * different requests. It also refuses documents that are slow to parse.
 */
export function parseJson(bytes: Uint8Array, maxDepth: number): unknown {
  const strings = scanJson(bytes, maxDepth);
  const text = decodeUtf8(bytes);
  const value = parse(text);
  // Of duplicate names, `JSON.parse` keeps the last.
  if (stringsIn(value) !== strings) {
    refuseDuplicateName(text);
  }
  return value;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid(`is not valid JSON: ${lower((error as Error).message)}`);
  }
}

/** Decodes a body. Throws if it is not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalid("is not valid UTF-8");
  }
}

function stringsIn(value: unknown): number {
  if (typeof value === "string") {
    return 1;
  }
  if (typeof value !== "object" || value === null) {
    return 0;
  }
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) {
      count += stringsIn(item);
    }
  } else {
    for (const name in value) {
      count += 1 + stringsIn((value as Record<string, unknown>)[name]);
    }
  }
  return count;
}

/** Strings, names, brackets and commas of valid JSON. */
const token = /"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?|[{}[\],]/g;

/** An open object with the names so far, or an open array. */
interface Container {
  readonly names?: Set<string>;
  /** The name or index of the current item. */
  at: string | number;
}

function refuseDuplicateName(text: string): void {
  const open: Container[] = [];
  for (const [part, colon] of text.matchAll(token)) {
    const container = open.at(-1);
    if (part === "{") {
      open.push({ names: new Set(), at: "" });
    } else if (part === "[") {
      open.push({ at: 0 });
    } else if (part === "}" || part === "]") {
      open.pop();
    } else if (part === "," && typeof container?.at === "number") {
      container.at++;
    } else if (container && colon !== undefined) {
      container.at = parseName(part.slice(0, -colon.length));
      if (container.names?.has(container.at)) {
        throw duplicated(open);
      }
      container.names?.add(container.at);
    }
  }
}

function parseName(literal: string): string {
  return literal.includes("\\") ? JSON.parse(literal) : literal.slice(1, -1);
}

function duplicated(open: readonly Container[]): Error {
  const path = open.map(({ at }) => (typeof at === "number" ? `[${at}]` : `.${at}`)).join("");
  return invalidRequest({
    field: path.replace(/^\./, ""),
    message: "is duplicated: send it once",
    code: "duplicate",
  });
}

function invalid(message: string): Error {
  return invalidRequest({ field: "request", message, code: "malformed" });
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
