import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator, type Violation } from "@bufbuild/protovalidate";
import { overlongListIn } from "../contract/fields.js";
import { validationRules } from "../contract/methods.js";
import type { FieldViolation } from "../contract/problems.js";
import { memoize } from "../lib/cache.js";

let validator: Validator | undefined;

/**
 * All that breaks the rules written in the proto of a message, but for those of
 * one id that is forgiven. Pages ask it too: it runs in browsers.
 */
export function violationsIn<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  forgiven?: string,
): readonly FieldViolation[] {
  const overlong = overlongListIn(schema, message);
  if (overlong) {
    return [overlong];
  }
  return findViolations(schema, message)
    .filter(({ ruleId }) => ruleId !== forgiven)
    .map(toFieldViolation);
}

/** All that breaks the rules of a message, as the validator tells it. */
export function findViolations<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): readonly Violation[] {
  validator ??= createValidator({ registry: validationRules, regexMatch: matchesPattern });
  const result = validator.validate(schema, message);
  if (result.kind === "error") {
    throw result.error;
  }
  return result.violations ?? [];
}

export function toFieldViolation({
  field,
  message,
}: Pick<Violation, "field" | "message">): FieldViolation {
  return { field: pathToString(field) || "request", message };
}

const regExpOf = memoize((pattern: string) => {
  // The one thing in our patterns that JavaScript spells in another way.
  return new RegExp(pattern.replaceAll(String.raw`\x{`, String.raw`\u{`), "u");
});

/**
 * Tries a pattern of a rule by the engine that is there. The validator brings
 * one of its own, which takes a second to prepare for names in other alphabets,
 * and all calls would wait for it.
 */
export function matchesPattern(pattern: string, text: string): boolean {
  return regExpOf(pattern).test(text);
}
