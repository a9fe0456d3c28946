import { create } from "@bufbuild/protobuf";
import {
  type AccessRule,
  AccessRuleConditionSchema,
  AccessRuleSchema,
} from "../../../gen/latchkey/v1/access_rule_pb.js";
import { inEvaluationOrder } from "../../../src/contract/decisions/decide.js";
import { choicesOf } from "../../../src/contract/fields.js";
import { inWords } from "../../common/words.js";

/** Rules of applications have a container, rules of sessions have conditions. */
export type RuleKind = "private" | "public" | "management" | "session";

export const transforms = choicesOf(AccessRuleSchema.field.transform);
export const attributes = choicesOf(AccessRuleConditionSchema.field.attribute);
export const operators = choicesOf(AccessRuleConditionSchema.field.operator);

/** The rules in evaluation order. */
export function sortByPriority(rules: readonly AccessRule[]): AccessRule[] {
  return inEvaluationOrder(rules).map(({ index }) => rules[index] as AccessRule);
}

/** Sets each priority to the position. Unchanged rules keep their identity. */
export function renumbered(
  rules: readonly AccessRule[],
  change: (rule: AccessRule, fields: Partial<AccessRule>) => AccessRule,
): AccessRule[] {
  return rules.map((rule, index) =>
    rule.priority === index + 1 ? rule : change(rule, { priority: index + 1 }),
  );
}

/** An empty rule with the last priority. */
export function newRule(kind: RuleKind, rules: readonly AccessRule[]): AccessRule {
  return create(AccessRuleSchema, {
    priority: lastPriority(rules) + 1,
    conditions: kind === "session" ? [newCondition()] : [],
    transform: "mask",
  });
}

export function newCondition() {
  const [attribute = ""] = attributes;
  const [operator = ""] = operators;
  return create(AccessRuleConditionSchema, { attribute, operator });
}

/** A copy with the last priority. */
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

/** The description of a rule, or else its scope. */
export function nameOfRule(rule: AccessRule): string {
  return rule.description || scopeInWords(rule);
}

export function scopeInWords({ container, conditions }: AccessRule): string {
  if (container !== undefined) {
    return `in ${container}`;
  }
  if (conditions.length === 0) {
    return "all tokens";
  }
  return conditions
    .map(({ attribute, operator, value }) => `${attribute} ${inWords(operator)} ${value}`)
    .join(" and ");
}

/** Stable ids for rules while they are edited and moved. */
export interface RuleIds {
  of(rule: AccessRule): string;
  /** Returns a changed copy with the same id. */
  change(rule: AccessRule, fields: Partial<AccessRule>): AccessRule;
}

export function createRuleIds(): RuleIds {
  const ids = new WeakMap<AccessRule, string>();
  let count = 0;

  function of(rule: AccessRule): string {
    const id = ids.get(rule) ?? `rule-${++count}`;
    ids.set(rule, id);
    return id;
  }

  return {
    of,
    change(rule, fields) {
      const changed = { ...rule, ...fields };
      ids.set(changed, of(rule));
      return changed;
    },
  };
}
