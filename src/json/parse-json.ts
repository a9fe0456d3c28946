import { invalidRequest } from "../errors.js";
import {
  asciiText,
  excessIn,
  lookAtJson,
  surelyHasNoExcess,
  surelyHasNoTwins,
} from "./json-text.js";

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
