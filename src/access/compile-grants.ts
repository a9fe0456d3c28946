import type { Grants, RuleRecord } from "../store/store.js";
import { indexRules, type RuleIndex } from "./rule-index.js";
import { type Scope, scopeOf } from "./scope.js";

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
