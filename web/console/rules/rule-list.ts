import { create } from "@bufbuild/protobuf";
import {
  type AccessRule,
  AccessRuleConditionSchema,
  AccessRuleSchema,
} from "../../../gen/latchkey/v1/access_rule_pb.js";
import { inOrderOfTrying } from "../../../src/contract/decisions/decide.js";
import { choicesOf } from "../../../src/contract/fields.js";

/** Whose rules they are: those of applications are about containers, those of sessions have conditions. */
export type RuleKind = "private" | "public" | "management" | "session";

/** How much of a token can be shown. */
export const transforms = choicesOf(AccessRuleSchema.field.transform);
export const attributes = choicesOf(AccessRuleConditionSchema.field.attribute);
export const operators = choicesOf(AccessRuleConditionSchema.field.operator);

/** The rules in the order in which they are tried. */
export function sortByPriority(rules: readonly AccessRule[]): AccessRule[] {
  return inOrderOfTrying(rules).map(({ place }) => rules[place] as AccessRule);
}

/** Gives each rule the priority that goes with its place. Rules that have it already stay the same. */
export function renumbered(
  rules: readonly AccessRule[],
  change: (rule: AccessRule, fields: Partial<AccessRule>) => AccessRule,
): AccessRule[] {
  return rules.map((rule, place) =>
    rule.priority === place + 1 ? rule : change(rule, { priority: place + 1 }),
  );
}

/** A rule to be filled in, which is tried after all others. */
export function newRule(kind: RuleKind, rules: readonly AccessRule[]): AccessRule {
  return create(AccessRuleSchema, {
    priority: lastPriority(rules) + 1,
    conditions: kind === "session" ? [newCondition()] : [],
    transform: "mask",
  });
}

/** A condition to be filled in. */
export function newCondition() {
  const [attribute = ""] = attributes;
  const [operator = ""] = operators;
  return create(AccessRuleConditionSchema, { attribute, operator });
}

/** The same rule once more, which is tried after all others. */
export function duplicateOf(rule: AccessRule, rules: readonly AccessRule[]): AccessRule {
  return create(AccessRuleSchema, {
    ...rule,
    priority: lastPriority(rules) + 1,
    conditions: rule.conditions.map((condition) => ({ ...condition })),
    permissions: [...rule.permissions],
  });
}

function lastPriority(rules: readonly AccessRule[]): number {
  return Math.max(0, ...rules.map(({ priority }) => priority));
}

/** What a rule is called: as its author did, or by what it is about. */
export function nameOfRule(rule: AccessRule): string {
  return rule.description || scopeInWords(rule);
}

/** What a rule is about. */
export function scopeInWords({ container, conditions }: AccessRule): string {
  if (container !== undefined) {
    return `in ${container}`;
  }
  if (conditions.length === 0) {
    return "on everything";
  }
  return conditions
    .map(({ attribute, operator, value }) => `${attribute} ${operatorInWords(operator)} ${value}`)
    .join(" and ");
}

/** `starts_with` is `starts with`. */
export function operatorInWords(operator: string): string {
  return operator.replaceAll("_", " ");
}
