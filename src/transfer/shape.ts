import type { FieldViolation } from "../contract/problems.js";
import { isId } from "../lib/uuid.js";
import { lastMoment } from "../validation/time.js";

/** Reads a value of JSON. Where it is not what it should be, adds what is wrong, and answers whatever. */
export type Read<T> = (value: unknown, path: string, faults: FieldViolation[]) => T;

/** A member of an object. */
interface Member<T> {
  readonly read: Read<T>;
  /** What it is where it is left out; absent where it may not be. */
  readonly otherwise?: { readonly value: T };
}

/** How many faults of a line are told. Where there are so many, it is not read on. */
const mostFaults = 20;

function addFault(faults: FieldViolation[], field: string, message: string): void {
  if (!isFull(faults)) {
    faults.push({ field, message });
  }
}

function isFull(faults: readonly FieldViolation[]): boolean {
  return faults.length >= mostFaults;
}

type Shape = Readonly<Record<string, Member<unknown>>>;
type Of<S extends Shape> = {
  readonly [K in keyof S]: S[K] extends Member<infer T> ? T : never;
};

/** Reads what keeps to a test, and says what it must be where it does not. */
function kept<T>(must: string, take: (value: unknown) => T | undefined): Read<T> {
  return (value, path, faults) => {
    const taken = take(value);
    if (taken === undefined) {
      addFault(faults, path, `must be ${must}`);
    }
    return taken as T;
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed();
}

export const text: Read<string> = kept("a text", (value) => (isText(value) ? value : undefined));

export const flag: Read<boolean> = kept("true or false", (value) =>
  typeof value === "boolean" ? value : undefined,
);

/** Ids are kept in lower case. */
export const id: Read<string> = kept("a UUID", (value) =>
  isText(value) && isId(value) ? value.toLowerCase() : undefined,
);

/** Ids that tell when they were made, which some stores find them by. */
export const datedId: Read<string> = kept("a UUID of version 7", (value) =>
  isText(value) && isId(value) && value[14] === "7" ? value.toLowerCase() : undefined,
);

const mostInteger = 2 ** 31 - 1;
export const integer: Read<number> = kept(`a whole number from 0 to ${mostInteger}`, (value) =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) <= mostInteger
    ? (value as number)
    : undefined,
);

const hashSize = 32;
const hashText = /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/;
export const hash: Read<Buffer> = kept(`a hash of ${hashSize} bytes in base64`, (value) =>
  isText(value) && hashText.test(value) ? Buffer.from(value, "base64") : undefined,
);

export const moment: Read<number> = kept(
  "a date and time since 1970 such as 2030-01-31T12:00:00.000Z",
  (value) => {
    const moment = isText(value) ? readMoment(value) : Number.NaN;
    return moment >= 0 && moment <= lastMoment ? moment : undefined;
  },
);

const momentText = /^(\d{4}-\d\d-\d\dT\d\d):\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** Reads a moment in the spelling of RFC 3339, or answers that it is no number. */
function readMoment(text: string): number {
  const moment = Date.parse(text);
  if (Number.isNaN(moment) || new Date(moment).toISOString() === text) {
    return moment;
  }
  const [, hour] = momentText.exec(text) ?? [];
  return hour !== undefined && isInCalendar(hour) ? moment : Number.NaN;
}

/** Whether the calendar has such a day and hour: it would be read as one of the next. */
function isInCalendar(hour: string): boolean {
  const moment = Date.parse(`${hour}:00Z`);
  return !Number.isNaN(moment) && new Date(moment).toISOString().startsWith(hour);
}

export function oneOf<const T extends string>(...values: T[]): Read<T> {
  return kept(values.join(" or "), (value) => values.find((one) => one === value));
}

export function textLike(pattern: RegExp, must: string): Read<string> {
  return kept(must, (value) => (isText(value) && pattern.test(value) ? value : undefined));
}

export function listOf<T>(read: Read<T>): Read<readonly T[]> {
  return (value, path, faults) => {
    if (!Array.isArray(value)) {
      addFault(faults, path, "must be a list");
      return [];
    }
    const items: T[] = [];
    for (const [at, item] of value.entries()) {
      if (isFull(faults)) {
        break;
      }
      items.push(read(item, `${path}[${at}]`, faults));
    }
    return items;
  };
}

/** Makes something else of what is read, where nothing is wrong with it. */
export function mapped<A, B>(read: Read<A>, to: (value: A) => B): Read<B> {
  return (value, path, faults) => {
    const known = faults.length;
    const taken = read(value, path, faults);
    return faults.length === known && !isFull(faults) ? to(taken) : (undefined as B);
  };
}

export function required<T>(read: Read<T>): Member<T> {
  return { read };
}

export function optional<T>(read: Read<T>): Member<T | undefined> {
  return { read, otherwise: { value: undefined } };
}

/** A member that is this where it is left out. */
export function usually<T>(value: T, read: Read<T>): Member<T> {
  return { read, otherwise: { value } };
}

/** Reads an object that has these members and no others. */
export function object<S extends Shape>(shape: S): Read<Of<S>> {
  const members = Object.entries(shape);
  return (value, path, faults) => {
    const read: Record<string, unknown> = {};
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      addFault(faults, path || "line", "must be an object");
      return read as Of<S>;
    }
    const given = value as Readonly<Record<string, unknown>>;
    let known = 0;
    for (const [name, member] of members) {
      if (Object.hasOwn(given, name)) {
        known++;
        read[name] = member.read(given[name], below(path, name), faults);
      } else if (member.otherwise) {
        read[name] = member.otherwise.value;
      } else {
        addFault(faults, below(path, name), "is required");
      }
    }
    const names = Object.keys(given);
    for (const name of known === names.length ? [] : names) {
      if (isFull(faults)) {
        break;
      }
      if (!Object.hasOwn(shape, name)) {
        addFault(faults, below(path, name), "is not known");
      }
    }
    return read as Of<S>;
  };
}

function below(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}
