import { type DescMessage, getOption, type Message, type MessageShape } from "@bufbuild/protobuf";
import type { Path } from "@bufbuild/protobuf/reflect";
import { createValidator, type Validator, type Violation } from "@bufbuild/protovalidate";
import { field as fieldRules } from "../../gen/buf/validate/validate_pb.js";
import { findOverlong, validationRules } from "../contract/fields.js";
import type { ApplicationType, Grants } from "../contract/grants.js";
import { mayHold } from "../contract/methods.js";
import type { FieldViolation } from "../contract/problems.js";
import { matchesPattern } from "./patterns.js";
import { findUpdateViolations, maskRule } from "./update-mask.js";
import { describeViolation, type ReportedViolation } from "./violation-messages.js";

let validator: Validator | undefined;

/**
 * Returns every violation of the rules in the proto of a message, except those
 * of the rule `ignoredRule`. The console uses it too, so it must run in browsers.
 */
export function findFieldViolations<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  ignoredRule?: string,
): readonly FieldViolation[] {
  const overlong = findOverlong(schema, message);
  if (overlong) {
    return [overlong];
  }
  return [
    ...findViolations(schema, message)
      .filter(({ ruleId }) => ruleId !== ignoredRule && ruleId !== maskRule)
      .map((violation) => toFieldViolation(violation, valueAt(message, violation.field))),
    ...findUpdateViolations(schema, message),
  ];
}

/** Returns the violations as protovalidate reports them. */
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

export function toFieldViolation(violation: ReportedViolation, value: unknown): FieldViolation {
  return describeViolation(violation, (field) => getOption(field, fieldRules), value);
}

/** The value at a path of fields and list items. */
export function valueAt(message: Message, path: Path): unknown {
  let value: unknown = message;
  for (const part of path) {
    if (part.kind === "list_sub") {
      value = (value as readonly unknown[])[part.index];
    } else if (part.kind === "field" && part.oneof === undefined) {
      value = (value as Readonly<Record<string, unknown>>)[part.localName];
    } else {
      return undefined;
    }
  }
  return value;
}

/** Returns the grants that an application of this type cannot have. Runs in browsers too. */
export function findDisallowedGrants(type: ApplicationType, grants: Grants): FieldViolation[] {
  return [...findMissingContainers(type, grants), ...findDisallowedPermissions(type, grants)];
}

/** Returns the rules without a container, where this type of application requires one. */
export function findMissingContainers(type: ApplicationType, { rules }: Grants): FieldViolation[] {
  const message = `is required in the rules of a ${type} application`;
  return rules.flatMap(({ container }, index) =>
    container === undefined && type !== "management"
      ? [{ field: `rules[${index}].container`, message, code: "required" }]
      : [],
  );
}

function findDisallowedPermissions(
  type: ApplicationType,
  { permissions, rules }: Grants,
): FieldViolation[] {
  const disallowed = (held: readonly string[], path: string) =>
    held.flatMap((permission, index) =>
      mayHold(type, permission)
        ? []
        : [
            {
              field: `${path}[${index}]`,
              message: `${permission} cannot be granted to a ${type} application: remove it`,
              code: "application.type",
            },
          ],
    );
  return [
    ...disallowed(permissions, "permissions"),
    ...rules.flatMap((rule, index) => disallowed(rule.permissions, `rules[${index}].permissions`)),
  ];
}
