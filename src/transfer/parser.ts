import type { FieldViolation } from "../contract/problems.js";
import { isId } from "../lib/uuid.js";
import { maxTimestamp } from "../validation/time.js";

/**
 * Parses a JSON value. Adds violations with their paths, and then returns a placeholder. Written by
 * hand, because no dependency of the project validates plain JSON.
 */
export type Parser<T> = (value: unknown, path: string, violations: FieldViolation[]) => T;

interface Member<T> {
  readonly parse: Parser<T>;
  /** Absent if the member is required. */
  readonly default?: { readonly value: T };
}

/** Violations reported per line. Parsing stops there. */
const maxViolations = 20;

function addViolation(violations: FieldViolation[], field: string, message: string): void {
  if (!isFull(violations)) {
    violations.push({ field, message });
  }
}

function isFull(violations: readonly FieldViolation[]): boolean {
  return violations.length >= maxViolations;
}

type Shape = Readonly<Record<string, Member<unknown>>>;
type Of<S extends Shape> = {
  readonly [K in keyof S]: S[K] extends Member<infer T> ? T : never;
};

/** A parser that returns undefined for a value that is not `expected`. */
function scalar<T>(expected: string, parse: (value: unknown) => T | undefined): Parser<T> {
  return (value, path, violations) => {
    const parsed = parse(value);
    if (parsed === undefined) {
      addViolation(violations, path, `must be ${expected}`);
    }
    return parsed as T;
  };
}

function isString(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed();
}

export const string: Parser<string> = scalar("a string", (value) =>
  isString(value) ? value : undefined,
);

export const boolean: Parser<boolean> = scalar("true or false", (value) =>
  typeof value === "boolean" ? value : undefined,
);

/** Ids are stored in lower case. */
export const id: Parser<string> = scalar("a UUID", (value) =>
  isString(value) && isId(value) ? value.toLowerCase() : undefined,
);

/** Version 7 contains the creation time, which some stores search by. */
export const uuidV7: Parser<string> = scalar("a UUID of version 7", (value) =>
  isString(value) && isId(value) && value[14] === "7" ? value.toLowerCase() : undefined,
);

const maxInteger = 2 ** 31 - 1;
export const integer: Parser<number> = scalar(`a whole number from 0 to ${maxInteger}`, (value) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= maxInteger
    ? (value as number)
    : undefined,
);

const hashSize = 32;
const hashPattern = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
export const hash: Parser<Buffer> = scalar(`a hash of ${hashSize} bytes in base64`, (value) =>
  isString(value) && hashPattern.test(value) ? Buffer.from(value, "base64") : undefined,
);

export const timestamp: Parser<number> = scalar(
  "a date and time since 1970 such as 2030-01-31T12:00:00.000Z",
  (value) => {
    const timestamp = isString(value) ? parseTimestamp(value) : Number.NaN;
    return timestamp >= 0 && timestamp <= maxTimestamp ? timestamp : undefined;
  },
);

const timestampPattern = /^(\d{4}-\d\d-\d\dT\d\d):\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** Parses an RFC 3339 timestamp, or returns NaN. */
function parseTimestamp(string: string): number {
  const timestamp = Date.parse(string);
  if (Number.isNaN(timestamp) || new Date(timestamp).toISOString() === string) {
    return timestamp;
  }
  const [, hour] = timestampPattern.exec(string) ?? [];
  return hour !== undefined && isInCalendar(hour) ? timestamp : Number.NaN;
}

/** `Date.parse` would roll an invalid day or hour over to the next. */
function isInCalendar(hour: string): boolean {
  const timestamp = Date.parse(`${hour}:00Z`);
  return !Number.isNaN(timestamp) && new Date(timestamp).toISOString().startsWith(hour);
}

export function oneOf<const T extends string>(...values: T[]): Parser<T> {
  return scalar(values.join(" or "), (value) => values.find((one) => one === value));
}

export function matching(pattern: RegExp, expected: string): Parser<string> {
  return scalar(expected, (value) => (isString(value) && pattern.test(value) ? value : undefined));
}

export function arrayOf<T>(parse: Parser<T>): Parser<readonly T[]> {
  return (value, path, violations) => {
    if (!Array.isArray(value)) {
      addViolation(violations, path, "must be an array");
      return [];
    }
    const items: T[] = [];
    for (const [index, item] of value.entries()) {
      if (isFull(violations)) {
        break;
      }
      items.push(parse(item, `${path}[${index}]`, violations));
    }
    return items;
  };
}

/** Converts a parsed value, if it has no violations. */
export function map<A, B>(parse: Parser<A>, to: (value: A) => B): Parser<B> {
  return (value, path, violations) => {
    const before = violations.length;
    const parsed = parse(value, path, violations);
    return violations.length === before && !isFull(violations) ? to(parsed) : (undefined as B);
  };
}

export function required<T>(parse: Parser<T>): Member<T> {
  return { parse };
}

export function optional<T>(parse: Parser<T>): Member<T | undefined> {
  return { parse, default: { value: undefined } };
}

export function withDefault<T>(value: T, parse: Parser<T>): Member<T> {
  return { parse, default: { value } };
}

/** An object with these members and no others. */
export function object<S extends Shape>(shape: S): Parser<Of<S>> {
  const members = Object.entries(shape);
  return (value, path, violations) => {
    const parsed: Record<string, unknown> = {};
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      addViolation(violations, path || "line", "must be an object");
      return parsed as Of<S>;
    }
    const given = value as Readonly<Record<string, unknown>>;
    let knownCount = 0;
    for (const [name, member] of members) {
      if (Object.hasOwn(given, name)) {
        knownCount++;
        parsed[name] = member.parse(given[name], join(path, name), violations);
      } else if (member.default) {
        parsed[name] = member.default.value;
      } else {
        addViolation(violations, join(path, name), "is required");
      }
    }
    const names = Object.keys(given);
    for (const name of knownCount === names.length ? [] : names) {
      if (isFull(violations)) {
        break;
      }
      if (!Object.hasOwn(shape, name)) {
        addViolation(violations, join(path, name), "is unknown");
      }
    }
    return parsed as Of<S>;
  };
}

function join(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
