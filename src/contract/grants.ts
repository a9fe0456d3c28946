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

/** The permissions and rules of a key. */
export interface Grants {
  readonly permissions: readonly string[];
  readonly rules: readonly RuleRecord[];
}

/** The origins and networks from which the keys of an application may be used. An empty list allows all. */
export interface Restrictions {
  readonly allowedOrigins: readonly string[];
  readonly allowedCidrs: readonly string[];
}

const heldSets = new WeakMap<Grants, ReadonlySet<string>>();

/** Every permission that is granted directly or by a rule. There is one set per record. */
export function permissionSetOf(grants: Grants): ReadonlySet<string> {
  let held = heldSets.get(grants);
  if (!held) {
    held = new Set([grants.permissions, ...grants.rules.map((rule) => rule.permissions)].flat());
    heldSets.set(grants, held);
  }
  return held;
}

/** Every permission that is granted directly or by a rule, without duplicates. */
export function heldPermissions(grants: Grants): string[] {
  return [...permissionSetOf(grants)];
}

/**
 * Whether a permission is granted, directly or by a rule. Rules come last because they may be costly to read.
 * To look up many, use {@link permissionSetOf}.
 */
export function holds(grants: Grants, permission: string): boolean {
  return (
    grants.permissions.includes(permission) ||
    grants.rules.some((rule) => rule.permissions.includes(permission))
  );
}

/** Whether an application limits the origins or networks of its keys. */
export function isRestricted({ allowedOrigins, allowedCidrs }: Restrictions): boolean {
  return allowedOrigins.length > 0 || allowedCidrs.length > 0;
}

/** An application with all of these permissions manages its tenant. */
export const managerPermissions = ["application:create", "application:update"] as const;

/** Whether the holder of these grants can create and update applications. */
export function canManage(grants: Grants): boolean {
  return managerPermissions.every((permission) => holds(grants, permission));
}
