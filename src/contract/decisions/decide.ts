import type { Grants, RuleRecord } from "../grants.js";
import { firstMatch, indexRules, type RuleIndex } from "./rule-index.js";
import { covers, type Scope, scopeOf, type Token } from "./scope.js";

export type Decision = RuleGrant | BareGrant | Denial;

/** Allowed by a rule, and by which one. */
export interface RuleGrant {
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

/** Allowed by a permission that is held on everything. */
export interface BareGrant {
  readonly allowed: true;
  readonly transform: string;
  readonly decidedBy: { readonly permission: string };
}

export interface Denial {
  readonly allowed: false;
  /** Whether there is no grant of the permission, or there are only rules about other tokens. */
  readonly reason: "permission_missing" | "no_rule_matches";
}

/**
 * Decides what grants say about a permission on a token, or on none.
 *
 * Rules are tried in ascending priority, those of the same priority in the
 * order of the list. The first that lists the permission and matches decides.
 * After all of them comes the bare permission, which matches everything.
 *
 * Without a token only rules that match everything do match. A permission of
 * this service itself is about no token, so that there any rule that lists it
 * grants it, whatever its limits.
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
    return { allowed: true, transform: bareTransform(permission), decidedBy: { permission } };
  }
  return { allowed: false, reason: listing ? "no_rule_matches" : "permission_missing" };
}

/** Whose grants decided: the session's or its authorizer's. */
export type LimitedBy = "session" | "authorizer";

/** The stricter of two decisions, and whose it is. On a tie it is the session's. */
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

/** The more a transform reveals, the higher it ranks. */
export function rankOfTransform(transform: string): number {
  return transforms.indexOf(transform);
}

function decidingRank(listing: Listing, token: Token | undefined, ownPermission: boolean): number {
  if (!token && ownPermission) {
    return 0;
  }
  const { rules } = listing;
  if (rules.length <= mostTried) {
    return rules.findIndex(({ scope }) => scope && covers(scope, token));
  }
  return token ? firstMatch(indexOf(listing), token) : indexOf(listing).everything;
}

function grantBy({ transform, place, priority, description }: CompiledRule): RuleGrant {
  const rule = { place, priority, ...(description !== undefined && { description }) };
  return { allowed: true, transform, decidedBy: { rule } };
}

function bareTransform(permission: string): string {
  return permission === "token:use" ? "reveal" : "mask";
}

/** Grants made ready for decisions, of which each then costs about the same however many rules there are. */
export interface CompiledGrants {
  /** The permissions that are held on everything. */
  readonly permissions: ReadonlySet<string>;
  /** For each permission that rules list, those rules. */
  readonly listings: ReadonlyMap<string, Listing>;
}

/** Up to so many rules are tried one after the other, which takes no longer than to ask an index, and needs none. */
export const mostTried = 8;

/** The rules that list a permission, in the order in which they are tried. */
export interface Listing {
  readonly rules: CompiledRule[];
  /** Made when it is first asked for: of what may be granted little is ever asked. */
  index?: RuleIndex;
}

/** A rule as decisions need it. Many are kept, so it is no more than that. */
export interface CompiledRule {
  /** Absent where the rule can match nothing. */
  readonly scope: Scope | undefined;
  readonly transform: string;
  /** Its place in the list as it was given. The first is 0. */
  readonly place: number;
  readonly priority: number;
  readonly description: string | undefined;
}

/** The rules in ascending priority, those of the same one in the order of the list, each with its place there. */
export function inOrderOfTrying(
  rules: readonly RuleRecord[],
): { readonly rule: RuleRecord; readonly place: number }[] {
  return rules
    .map((rule, place) => ({ rule, place }))
    .sort((one, other) => one.rule.priority - other.rule.priority || one.place - other.place);
}

export function compileGrants({ permissions, rules }: Grants): CompiledGrants {
  const listings = new Map<string, Listing>();
  for (const { rule, place } of inOrderOfTrying(rules)) {
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

/** The index of the rules that list a permission. */
export function indexOf(listing: Listing): RuleIndex {
  listing.index ??= indexRules(listing.rules.map(({ scope }) => scope));
  return listing.index;
}

function compileRule(rule: RuleRecord, place: number): CompiledRule {
  const { transform, priority, description } = rule;
  return { scope: scopeOf(rule), transform, place, priority, description };
}
