import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";

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
