import type { Grants, RuleRecord } from "../grants.js";
import { firstMatch, indexRules, type RuleIndex } from "./rule-index.js";
import { covers, type Scope, scopeOf, type Token } from "./scope.js";

export type Decision<Rule extends DecidingRule = DecidingRule> =
  | RuleGrant<Rule>
  | DirectGrant
  | Denial;

interface RuleGrant<Rule> {
  readonly allowed: true;
  readonly transform: string;
  readonly decidedBy: { readonly rule: Rule };
}

export interface DecidingRule {
  /** The index of the rule in the original list. */
  readonly index: number;
  readonly priority: number;
  readonly description?: string;
}

/** Allowed by a permission that is granted directly, so it applies to everything. */
export interface DirectGrant {
  readonly allowed: true;
  readonly transform: string;
  readonly decidedBy: { readonly permission: string };
}

export interface Denial {
  readonly allowed: false;
  /** No grant lists the permission, or only rules for other tokens do. */
  readonly reason: "permission_missing" | "no_rule_matches";
}

/**
 * Decides whether grants allow a permission on a token, or without one.
 *
 * Rules are evaluated in ascending priority; rules of the same priority in list
 * order. The first rule that lists the permission and matches the token
 * decides. A directly granted permission comes last and matches everything.
 *
 * Without a token, only rules that match everything match. Latchkey's own
 * permissions do not concern tokens, so any rule that lists one grants it.
 */
export function decide(
  grants: CompiledGrants,
  permission: string,
  token: Token | undefined,
  ownPermission: boolean,
): Decision {
  const permissionRules = grants.rulesByPermission.get(permission);
  const rule = permissionRules?.rules[decidingRank(permissionRules, token, ownPermission)];
  if (rule) {
    return grantBy(rule);
  }
  if (grants.permissions.has(permission)) {
    return { allowed: true, transform: defaultTransform(permission), decidedBy: { permission } };
  }
  return { allowed: false, reason: permissionRules ? "no_rule_matches" : "permission_missing" };
}

/** Whether the grants of the session or of its authorizer decided. */
export type LimitedBy = "session" | "authorizer";

/** The stricter of two decisions. On a tie, the session's. */
export function stricterOf<D extends Decision>(
  bySession: D,
  byAuthorizer: D,
): { readonly decision: D; readonly limitedBy: LimitedBy } {
  const isLimited =
    bySession.allowed &&
    (!byAuthorizer.allowed ||
      rankOfTransform(byAuthorizer.transform) < rankOfTransform(bySession.transform));
  return isLimited
    ? { decision: byAuthorizer, limitedBy: "authorizer" }
    : { decision: bySession, limitedBy: "session" };
}

const transforms: readonly string[] = ["redact", "mask", "reveal"];

/** A transform that reveals more ranks higher. */
export function rankOfTransform(transform: string): number {
  return transforms.indexOf(transform);
}

function decidingRank(
  permissionRules: PermissionRules,
  token: Token | undefined,
  ownPermission: boolean,
): number {
  if (!token && ownPermission) {
    return 0;
  }
  const { rules } = permissionRules;
  if (rules.length <= maxLinearRules) {
    return rules.findIndex(({ scope }) => scope && covers(scope, token));
  }
  const ruleIndex = ruleIndexOf(permissionRules);
  return token ? firstMatch(ruleIndex, token) : ruleIndex.everything;
}

function grantBy({
  transform,
  index,
  priority,
  description,
}: CompiledRule): RuleGrant<DecidingRule> {
  const rule = { index, priority, ...(description !== undefined && { description }) };
  return { allowed: true, transform, decidedBy: { rule } };
}

/** The transform of a directly granted permission. */
export function defaultTransform(permission: string): string {
  return permission === "token:use" ? "reveal" : "mask";
}

/** Grants compiled so that the cost of a decision hardly depends on the number of rules. */
export interface CompiledGrants {
  readonly permissions: ReadonlySet<string>;
  readonly rulesByPermission: ReadonlyMap<string, PermissionRules>;
}

/** Up to this number of rules, a linear search is as fast as an index. */
export const maxLinearRules = 8;

/** The rules that list a permission, in evaluation order. */
interface PermissionRules {
  readonly rules: CompiledRule[];
  /** Built on first use, because most permissions are never checked. */
  ruleIndex?: RuleIndex;
}

/** The parts of a rule that decisions need. Many are cached, so it is small. */
interface CompiledRule {
  /** `undefined` if the rule cannot match anything. */
  readonly scope: Scope | undefined;
  readonly transform: string;
  /** The index of the rule in the original list. */
  readonly index: number;
  readonly priority: number;
  readonly description: string | undefined;
}

/** Sorts rules by ascending priority, then by their index in the list. */
export function inEvaluationOrder(
  rules: readonly RuleRecord[],
): { readonly rule: RuleRecord; readonly index: number }[] {
  return rules
    .map((rule, index) => ({ rule, index }))
    .sort((one, other) => one.rule.priority - other.rule.priority || one.index - other.index);
}

export function compileGrants({ permissions, rules }: Grants): CompiledGrants {
  const rulesByPermission = new Map<string, PermissionRules>();
  for (const { rule, index } of inEvaluationOrder(rules)) {
    const compiled = compileRule(rule, index);
    for (const permission of new Set(rule.permissions)) {
      const permissionRules = rulesByPermission.get(permission);
      if (permissionRules) {
        permissionRules.rules.push(compiled);
      } else {
        rulesByPermission.set(permission, { rules: [compiled] });
      }
    }
  }
  return { permissions: new Set(permissions), rulesByPermission };
}

function ruleIndexOf(permissionRules: PermissionRules): RuleIndex {
  permissionRules.ruleIndex ??= indexRules(permissionRules.rules.map(({ scope }) => scope));
  return permissionRules.ruleIndex;
}

function compileRule(rule: RuleRecord, index: number): CompiledRule {
  const { transform, priority, description } = rule;
  return { scope: scopeOf(rule), transform, index, priority, description };
}
