import type { ConditionRecord, RuleRecord } from "../../../src/contract/grants.js";

/** A rule that grants masked `token:read` on everything, with overrides. */
export function ruleOf(fields: Partial<RuleRecord> = {}): RuleRecord {
  return {
    priority: 1,
    conditions: [],
    transform: "mask",
    permissions: ["token:read"],
    ...fields,
  };
}

export function conditionOf(attribute: string, operator: string, value: string): ConditionRecord {
  return { attribute, operator, value };
}
