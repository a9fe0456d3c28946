import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { readPattern } from "./quick-pattern.js";
import { NotUnderstood, type Test } from "./quick-test.js";

/** What `this` is in a rule. */
export type Subject = DescMessage | "string";

/**
 * Reads a rule that is written in CEL, of this much of the language:
 *
 *     or     = and { "||" and }
 *     and    = not { "&&" not }
 *     not    = "!" not | "(" or ")" | atom
 *     atom   = "rule"
 *            | "has(this." field ")"
 *            | "this." field ".size()" ( ">" | "==" ) number
 *            | "this.matches(" text ")"
 *
 * where `rule` is true: the rule is asked for. Throws `NotUnderstood` where the
 * rule has anything else.
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
      throw new NotUnderstood();
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
        throw new NotUnderstood();
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
    const matches = this.#take(/this\.matches\((?:r'([^']*)'|'([^'\\]*)')\)/);
    if (matches && this.#subject === "string") {
      return matchesPattern(matches[1] ?? matches[2] ?? "", isNegated);
    }
    throw new NotUnderstood();
  }

  /** Takes what comes next, if it is that. */
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
      throw new NotUnderstood();
    }
    return field;
  }
}

function isSet(field: DescField): Test {
  if (field.presence !== FeatureSet_FieldPresence.EXPLICIT) {
    throw new NotUnderstood();
  }
  const { localName } = field;
  return (value) => (value as Record<string, unknown>)[localName] !== undefined;
}

function hasSize(field: DescField, isMore: boolean, size: number): Test {
  if (field.fieldKind !== "list") {
    throw new NotUnderstood();
  }
  const { localName } = field;
  const lengthOf = (value: unknown) => (value as Record<string, unknown[]>)[localName]?.length ?? 0;
  return isMore ? (value) => lengthOf(value) > size : (value) => lengthOf(value) === size;
}

function matchesPattern(source: string, isNegated: boolean): Test {
  const { regExp, isExact } = readPattern(source);
  // Less than the pattern matches would be more where its contrary is asked for.
  if (isNegated && !isExact) {
    throw new NotUnderstood();
  }
  return (value) => regExp.test(value as string);
}
