import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  FeatureSet_FieldPresence,
  type FieldMask,
  FieldMaskSchema,
} from "@bufbuild/protobuf/wkt";
import type { OneofValue } from "../../contract/fields.js";
import { regExpOf } from "../patterns.js";

/** The type of `this` in a rule. */
type ValueType = DescMessage | "string";

/**
 * Compiles a rule that is written in this subset of CEL:
 *
 *     or     = and { "||" and }
 *     and    = not { "&&" not }
 *     not    = "!" not | "(" or ")" | atom
 *     atom   = "rule"
 *            | "[" or { "," or } "].exists_one(it, it)"
 *            | "has(this." field ")"
 *            | "this." field ".size()" ( ">" | "==" ) number
 *            | "this" [ "." field ] ".matches(" text ")"
 *            | "this." field "!=" text
 *            | text "in this." field ".paths"
 *            | "this in [" text { "," text } "]"
 *            | "this" ( "==" | ">=" ) "duration('" number "s')"
 *
 * `rule` is always true, because the rule is enabled. Throws `UnsupportedRule`
 * for anything else.
 */
export function readExpression(expression: string, valueType: ValueType): Test {
  return new ExpressionReader(expression, valueType).read();
}

class ExpressionReader {
  constructor(
    private rest: string,
    private readonly valueType: ValueType,
  ) {}

  read(): Test {
    const test = this.or(false);
    if (this.rest.trim() !== "") {
      throw new UnsupportedRule();
    }
    return test;
  }

  private or(isNegated: boolean): Test {
    let test = this.and(isNegated);
    while (this.take(/\|\|/)) {
      const [left, right] = [test, this.and(isNegated)];
      test = (value) => left(value) || right(value);
    }
    return test;
  }

  private and(isNegated: boolean): Test {
    let test = this.not(isNegated);
    while (this.take(/&&/)) {
      const [left, right] = [test, this.not(isNegated)];
      test = (value) => left(value) && right(value);
    }
    return test;
  }

  private not(isNegated: boolean): Test {
    if (this.take(/!/)) {
      const test = this.not(!isNegated);
      return (value) => !test(value);
    }
    if (this.take(/\(/)) {
      const test = this.or(isNegated);
      if (!this.take(/\)/)) {
        throw new UnsupportedRule();
      }
      return test;
    }
    return this.atom(isNegated);
  }

  private atom(isNegated: boolean): Test {
    if (this.take(/rule\b/)) {
      return () => true;
    }
    if (this.take(/\[/)) {
      return this.existsOne();
    }
    const has = this.take(/has\(this\.(\w+)\)/);
    if (has) {
      return isSet(this.field(has[1]));
    }
    const size = this.take(/this\.(\w+)\.size\(\) (>|==) (\d+)/);
    if (size) {
      return hasSize(this.field(size[1]), size[2] === ">", Number(size[3]));
    }
    const matches = this.take(/this(?:\.(\w+))?\.matches\((?:r'([^']*)'|'([^'\\]*)')\)/);
    if (matches) {
      const regExp = regExpOf(matches[2] ?? matches[3] ?? "");
      return this.ofString(matches[1], (value) => regExp.test(value as string));
    }
    const differs = this.take(/this\.(\w+) != '([^'\\]*)'/);
    if (differs) {
      return this.ofString(differs[1], (value) => value !== differs[2]);
    }
    const values = this.take(/this in \[((?:'[^'\\]*'(?:, )?)+)\]/);
    if (values) {
      const listed = new Set(values[1]?.slice(1, -1).split("', '"));
      return this.ofString(undefined, (value) => listed.has(value as string));
    }
    const names = this.take(/'([^'\\]*)' in this\.(\w+)\.paths/);
    if (names) {
      return namesPath(this.field(names[2]), names[1] ?? "");
    }
    const lasts = this.take(/this (==|>=) duration\('(\d+)s'\)/);
    if (lasts && this.isDuration() && !isNegated) {
      return hasLength(lasts[1] === "==", BigInt(lasts[2] ?? 0));
    }
    throw new UnsupportedRule();
  }

  /** Whether exactly one condition holds. Negated, because the others must certainly not hold. */
  private existsOne(): Test {
    const conditions = [this.or(true)];
    while (this.take(/,/)) {
      conditions.push(this.or(true));
    }
    if (!this.take(/\]\.exists_one\(it, it\)/)) {
      throw new UnsupportedRule();
    }
    return (value) => {
      let count = 0;
      for (const holds of conditions) {
        count += holds(value) ? 1 : 0;
      }
      return count === 1;
    };
  }

  /** A test of the string value itself, or of one of its fields. */
  private ofString(name: string | undefined, test: Test): Test {
    if (name === undefined && this.valueType === "string") {
      return test;
    }
    const { scalar, presence, localName } = this.field(name);
    if (scalar !== ScalarType.STRING || presence !== FeatureSet_FieldPresence.IMPLICIT) {
      throw new UnsupportedRule();
    }
    return (value) => test((value as Record<string, unknown>)[localName]);
  }

  private isDuration(): boolean {
    return this.valueType !== "string" && this.valueType.typeName === DurationSchema.typeName;
  }

  /** Consumes the next part of the expression if it matches. */
  private take(part: RegExp): RegExpExecArray | null {
    const found = new RegExp(`^\\s*${part.source}`).exec(this.rest);
    if (found) {
      this.rest = this.rest.slice(found[0].length);
    }
    return found;
  }

  private field(name: string | undefined): DescField {
    const fields = this.valueType === "string" ? [] : this.valueType.fields;
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
  const { localName, oneof } = field;
  return oneof
    ? (value) => (value as Record<string, OneofValue>)[oneof.localName]?.case === localName
    : (value) => (value as Record<string, unknown>)[localName] !== undefined;
}

function hasSize(field: DescField, isMore: boolean, size: number): Test {
  if (field.fieldKind !== "list") {
    throw new UnsupportedRule();
  }
  const { localName } = field;
  const lengthOf = (value: unknown) => (value as Record<string, unknown[]>)[localName]?.length ?? 0;
  return isMore ? (value) => lengthOf(value) > size : (value) => lengthOf(value) === size;
}

/** Whether a field mask names a path. */
function namesPath(field: DescField, path: string): Test {
  if (field.message?.typeName !== FieldMaskSchema.typeName) {
    throw new UnsupportedRule();
  }
  const { localName } = field;
  return (value) =>
    (value as Record<string, FieldMask | undefined>)[localName]?.paths.includes(path) ?? false;
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
