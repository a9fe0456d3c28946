import type { RuleRecord } from "./store.js";

/** The fields of a rule that we know, and no others, always in the same order. */
export function ruleFields(rule: RuleRecord): RuleRecord {
  return {
    description: rule.description,
    priority: rule.priority,
    container: rule.container,
    conditions: rule.conditions.map(({ attribute, operator, value }) => ({
      attribute,
      operator,
      value,
    })),
    transform: rule.transform,
    permissions: rule.permissions,
  };
}
