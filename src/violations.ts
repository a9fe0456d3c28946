import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator } from "@bufbuild/protovalidate";
import { validationRules } from "./contract.js";
import type { FieldViolation } from "./errors.js";
import { listFieldsOf } from "./list-fields.js";
import { oncePer } from "./once-per.js";

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
  const excess = excessIn(schema, message, "");
  if (excess) {
    return [excess];
  }
  validator ??= createValidator({ registry: validationRules, regexMatch: matchesPattern });
  const result = validator.validate(schema, message);
  if (result.kind === "error") {
    throw result.error;
  }
  return (result.violations ?? [])
    .filter(({ ruleId }) => ruleId !== forgiven)
    .map(({ field, message }) => ({ field: pathToString(field) || "request", message }));
}

const regExpOf = oncePer((pattern: string) => {
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

/**
 * The first list that is too long, to be refused before anyone looks at its
 * items: the validator would look at every one of them first.
 */
function excessIn(schema: DescMessage, message: Message, path: string): FieldViolation | undefined {
  for (const { name, localName, most, items } of listFieldsOf(schema)) {
    const list = (message as unknown as Record<string, unknown[]>)[localName] ?? [];
    const field = path + name;
    if (list.length > most) {
      return { field, message: `must contain no more than ${most} items` };
    }
    for (const [at, item] of items ? list.entries() : []) {
      const excess = excessIn(items as DescMessage, item as Message, `${field}[${at}].`);
      if (excess) {
        return excess;
      }
    }
  }
  return undefined;
}
