import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { type Duration, DurationSchema, FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";

/** The type of `this` in a rule. */
type Subject = DescMessage | "string";

/**
 * Compiles a rule that is written in this subset of CEL:
 *
 *     or     = and { "||" and }
 *     and    = not { "&&" not }
 *     not    = "!" not | "(" or ")" | atom
 *     atom   = "rule"
 *            | "has(this." field ")"
 *            | "this." field ".size()" ( ">" | "==" ) number
 *            | "this" [ "." field ] ".matches(" text ")"
 *            | "this." field "!=" text
 *            | "this" ( "==" | ">=" ) "duration('" number "s')"
 *
 * `rule` is always true, because the rule is enabled. Throws `UnsupportedRule`
 * for anything else.
 */
export function readExpression(expression: string, subject: Subject): Test {
  return new ExpressionReader(expression, subject).read();
}

class ExpressionReader {
  #rest: string;
  readonly #subject: Subject;

  constructor(expression: string, subject: Subject) {
    this.#rest = expression;
    this.#subject = subject;
  }

  read(): Test {
    const test = this.#or(false);
    if (this.#rest.trim() !== "") {
      throw new UnsupportedRule();
    }
    return test;
  }

  #or(isNegated: boolean): Test {
    let test = this.#and(isNegated);
    while (this.#take(/\|\|/)) {
      const [left, right] = [test, this.#and(isNegated)];
      test = (value) => left(value) || right(value);
    }
    return test;
  }

  #and(isNegated: boolean): Test {
    let test = this.#not(isNegated);
    while (this.#take(/&&/)) {
      const [left, right] = [test, this.#not(isNegated)];
      test = (value) => left(value) && right(value);
    }
    return test;
  }

  #not(isNegated: boolean): Test {
    if (this.#take(/!/)) {
      const test = this.#not(!isNegated);
      return (value) => !test(value);
    }
    if (this.#take(/\(/)) {
      const test = this.#or(isNegated);
      if (!this.#take(/\)/)) {
        throw new UnsupportedRule();
      }
      return test;
    }
    return this.#atom(isNegated);
  }

  #atom(isNegated: boolean): Test {
    if (this.#take(/rule\b/)) {
      return () => true;
    }
    const has = this.#take(/has\(this\.(\w+)\)/);
    if (has) {
      return isSet(this.#field(has[1]));
    }
    const size = this.#take(/this\.(\w+)\.size\(\) (>|==) (\d+)/);
    if (size) {
      return hasSize(this.#field(size[1]), size[2] === ">", Number(size[3]));
    }
    const matches = this.#take(/this(?:\.(\w+))?\.matches\((?:r'([^']*)'|'([^'\\]*)')\)/);
    if (matches) {
      const test = matchesPattern(matches[2] ?? matches[3] ?? "", isNegated);
      return this.#ofString(matches[1], test);
    }
    const differs = this.#take(/this\.(\w+) != '([^'\\]*)'/);
    if (differs) {
      return this.#ofString(differs[1], (value) => value !== differs[2]);
    }
    const lasts = this.#take(/this (==|>=) duration\('(\d+)s'\)/);
    if (lasts && this.#isDuration() && !isNegated) {
      return hasLength(lasts[1] === "==", BigInt(lasts[2] ?? 0));
    }
    throw new UnsupportedRule();
  }

  /** A test of the string value itself, or of one of its fields. */
  #ofString(name: string | undefined, test: Test): Test {
    if (name === undefined && this.#subject === "string") {
      return test;
    }
    const { scalar, presence, localName } = this.#field(name);
    if (scalar !== ScalarType.STRING || presence !== FeatureSet_FieldPresence.IMPLICIT) {
      throw new UnsupportedRule();
    }
    return (value) => test((value as Record<string, unknown>)[localName]);
  }

  #isDuration(): boolean {
    return this.#subject !== "string" && this.#subject.typeName === DurationSchema.typeName;
  }

  /** Consumes the next part of the expression if it matches. */
  #take(part: RegExp): RegExpExecArray | null {
    const found = new RegExp(`^\\s*${part.source}`).exec(this.#rest);
    if (found) {
      this.#rest = this.#rest.slice(found[0].length);
    }
    return found;
  }

  #field(name: string | undefined): DescField {
    const fields = this.#subject === "string" ? [] : this.#subject.fields;
    const field = fields.find((field) => field.name === name);
    if (!field) {
      throw new UnsupportedRule();
    }
    return field;
  }
}

function isSet(field: DescField): Test {
  if (field.presence !== FeatureSet_FieldPresence.EXPLICIT) {
    throw new UnsupportedRule();
  }
  const { localName } = field;
  return (value) => (value as Record<string, unknown>)[localName] !== undefined;
}

function hasSize(field: DescField, isMore: boolean, size: number): Test {
  if (field.fieldKind !== "list") {
    throw new UnsupportedRule();
  }
  const { localName } = field;
  const lengthOf = (value: unknown) => (value as Record<string, unknown[]>)[localName]?.length ?? 0;
  return isMore ? (value) => lengthOf(value) > size : (value) => lengthOf(value) === size;
}

/** Leaves durations with mixed signs or excess nanoseconds to protovalidate. */
function hasLength(isExact: boolean, length: bigint): Test {
  return (value) => {
    const { seconds, nanos } = value as Duration;
    return isExact
      ? seconds === length && nanos === 0
      : seconds >= length && nanos >= 0 && nanos < 1_000_000_000;
  };
}

function matchesPattern(source: string, isNegated: boolean): Test {
  const { regExp, isExact } = readPattern(source);
  // An inexact pattern matches too little, so its negation would accept too much.
  if (isNegated && !isExact) {
    throw new UnsupportedRule();
  }
  return (value) => regExp.test(value as string);
}

/** A pattern for the JavaScript engine. */
interface CompiledPattern {
  readonly regExp: RegExp;
  /** Whether it matches everything that the RE2 pattern matches. If not, it matches less, never more. */
  readonly isExact: boolean;
}

const escaped = String.raw`\\(?:[nt]|p\{[A-Z][a-z]?\}|x\{[0-9A-F]{1,6}\})`;
const characterClass = String.raw`\[\^?(?:${escaped}|[^\\[\]^])+\]`;
const others = String.raw`[A-Za-z0-9_/: -]|\((?!\?)|[)|*+?^$]|\{\d+(?:,\d*)?\}`;

/** RE2 syntax that has the same meaning in JavaScript. */
const token = new RegExp(`${characterClass}|${others}`, "y");

/** The engines may have different Unicode versions, which agree on Latin-1. */
const beyondLatin1 = String.raw`\u{100}-\u{10FFFF}`;

/**
 * Translates an RE2 pattern of a rule to JavaScript, which matches twenty times
 * as fast. Throws `UnsupportedRule` if the meaning might differ.
 */
export function readPattern(pattern: string): CompiledPattern {
  let source = "";
  let isExact = true;
  for (let index = 0; index < pattern.length; index = token.lastIndex) {
    token.lastIndex = index;
    const part = token.exec(pattern)?.[0];
    if (part === undefined) {
      throw new UnsupportedRule();
    }
    const namesCategory = part.includes(String.raw`\p`);
    if (namesCategory && !part.startsWith("[^")) {
      throw new UnsupportedRule();
    }
    isExact &&= !namesCategory;
    source += namesCategory ? `${translate(part).slice(0, -1)}${beyondLatin1}]` : translate(part);
  }
  return { regExp: compile(source), isExact };
}

/** Groups are never read, so they need no capture. */
function translate(part: string): string {
  return part === "(" ? "(?:" : part.replaceAll(String.raw`\x{`, String.raw`\u{`);
}

function compile(source: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch {
    throw new UnsupportedRule();
  }
}

/** Returns true only if a value certainly satisfies a rule. */
export type Test = (value: unknown) => boolean;

/** Thrown at compile time for a rule that the compiled checks do not support. */
export class UnsupportedRule extends Error {}

/** Combines tests into one that requires all of them. */
export function all(tests: readonly Test[]): Test {
  const [only] = tests;
  if (only && tests.length === 1) {
    return only;
  }
  return (value) => {
    for (const test of tests) {
      if (!test(value)) {
        return false;
      }
    }
    return true;
  };
}
