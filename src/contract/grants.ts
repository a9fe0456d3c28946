export const applicationTypes = ["private", "public", "management"] as const;

export type ApplicationType = (typeof applicationTypes)[number];

export interface ConditionRecord {
  readonly attribute: string;
  readonly operator: string;
  readonly value: string;
}

export interface RuleRecord {
  readonly description?: string | undefined;
  readonly priority: number;
  readonly container?: string | undefined;
  readonly conditions: readonly ConditionRecord[];
  readonly transform: string;
  readonly permissions: readonly string[];
}

/** What a key may do. */
export interface Grants {
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
}

/** Where the keys of an application may be used from. An empty list means from everywhere. */
export interface Restrictions {
  readonly allowedOrigins: readonly string[];
  readonly allowedCidrs: readonly string[];
}

/** All that is permitted, be it by a rule or not, once each. */
export function heldPermissions({ permissions, rules }: Grants): string[] {
  return [...new Set([...permissions, ...rules.flatMap((rule) => rule.permissions)])];
}

/** Whether a permission is granted, directly or by a rule. The rules, which may be dear to read, are asked last. */
export function holds(grants: Grants, permission: string): boolean {
  return (
    grants.permissions.includes(permission) ||
    grants.rules.some((rule) => rule.permissions.includes(permission))
  );
}

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

/** Whether the keys of an application may not be used from everywhere. */
export function isRestricted({ allowedOrigins, allowedCidrs }: Restrictions): boolean {
  return allowedOrigins.length > 0 || allowedCidrs.length > 0;
}
