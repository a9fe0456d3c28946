import type { Grants, RuleRecord } from "../grants.js";
import { firstMatch, indexRules, type RuleIndex } from "./rule-index.js";
import { covers, type Scope, scopeOf, type Token } from "./scope.js";

export type Decision = RuleGrant | DirectGrant | Denial;

interface RuleGrant {
  readonly allowed: true;
  readonly transform: string;
  readonly decidedBy: {
    readonly rule: {
      readonly place: number;
      readonly priority: number;
      readonly description?: string;
    };
  };
}

/** Allowed by a permission that is granted directly, so it applies to everything. */
interface DirectGrant {
  readonly allowed: true;
  readonly transform: string;
  readonly decidedBy: { readonly permission: string };
}

interface Denial {
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
  const listing = grants.listings.get(permission);
  const rule = listing?.rules[decidingRank(listing, token, ownPermission)];
  if (rule) {
    return grantBy(rule);
  }
  if (grants.permissions.has(permission)) {
    return { allowed: true, transform: defaultTransform(permission), decidedBy: { permission } };
  }
  return { allowed: false, reason: listing ? "no_rule_matches" : "permission_missing" };
}

/** Whether the grants of the session or of its authorizer decided. */
export type LimitedBy = "session" | "authorizer";

/** The stricter of two decisions. On a tie, the session's. */
export function stricterOf(
  bySession: Decision,
  byAuthorizer: Decision,
): { readonly decision: Decision; readonly limitedBy: LimitedBy } {
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

function decidingRank(listing: Listing, token: Token | undefined, ownPermission: boolean): number {
  if (!token && ownPermission) {
    return 0;
  }
  const { rules } = listing;
  if (rules.length <= maxLinearRules) {
    return rules.findIndex(({ scope }) => scope && covers(scope, token));
  }
  return token ? firstMatch(indexOf(listing), token) : indexOf(listing).everything;
}

function grantBy({ transform, place, priority, description }: CompiledRule): RuleGrant {
  const rule = { place, priority, ...(description !== undefined && { description }) };
  return { allowed: true, transform, decidedBy: { rule } };
}

function defaultTransform(permission: string): string {
  return permission === "token:use" ? "reveal" : "mask";
}

/** Grants compiled so that the cost of a decision hardly depends on the number of rules. */
export interface CompiledGrants {
  readonly permissions: ReadonlySet<string>;
  /** The rules by the permission that they list. */
  readonly listings: ReadonlyMap<string, Listing>;
}

/** Up to this number of rules, a linear search is as fast as an index. */
export const maxLinearRules = 8;

/** The rules that list a permission, in evaluation order. */
interface Listing {
  readonly rules: CompiledRule[];
  /** Built on first use, because most permissions are never checked. */
  index?: RuleIndex;
}

/** The parts of a rule that decisions need. Many are cached, so it is small. */
interface CompiledRule {
  /** `undefined` if the rule cannot match anything. */
  readonly scope: Scope | undefined;
  readonly transform: string;
  /** The index of the rule in the original list. */
  readonly place: number;
  readonly priority: number;
  readonly description: string | undefined;
}

/** Sorts rules by ascending priority, then by their index in the list. */
export function inEvaluationOrder(
  rules: readonly RuleRecord[],
): { readonly rule: RuleRecord; readonly place: number }[] {
  return rules
    .map((rule, place) => ({ rule, place }))
    .sort((one, other) => one.rule.priority - other.rule.priority || one.place - other.place);
}

export function compileGrants({ permissions, rules }: Grants): CompiledGrants {
  const listings = new Map<string, Listing>();
  for (const { rule, place } of inEvaluationOrder(rules)) {
    const compiled = compileRule(rule, place);
    for (const permission of new Set(rule.permissions)) {
      const listing = listings.get(permission);
      if (listing) {
        listing.rules.push(compiled);
      } else {
        listings.set(permission, { rules: [compiled] });
      }
    }
  }
  return { permissions: new Set(permissions), listings };
}

export function indexOf(listing: Listing): RuleIndex {
  listing.index ??= indexRules(listing.rules.map(({ scope }) => scope));
  return listing.index;
}

function compileRule(rule: RuleRecord, place: number): CompiledRule {
  const { transform, priority, description } = rule;
  return { scope: scopeOf(rule), transform, place, priority, description };
}
