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

/** The rules that list a permission, in the order in which they are tried. */
export interface Listing {
  readonly rules: CompiledRule[];
  /** Made when the permission is first asked for: of what may be granted little is ever asked. */
  index?: RuleIndex;
}

export interface CompiledRule {
  /** Absent where the rule can match nothing. */
  readonly scope: Scope | undefined;
  readonly grant: RuleGrant;
}

/** What a rule grants, and which one it is. */
export interface RuleGrant {
  readonly allowed: true;
  readonly transform: string;
  readonly decidedBy: {
    readonly rule: {
      /** Its place in the list as it was given. The first is 0. */
      readonly place: number;
      readonly priority: number;
      readonly description?: string;
    };
  };
}

export function compileGrants({ permissions, rules }: Grants): CompiledGrants {
  const listings = new Map<string, Listing>();
  const inOrder = rules
    .map((rule, place) => ({ rule, place }))
    .sort((one, other) => one.rule.priority - other.rule.priority || one.place - other.place);
  for (const { rule, place } of inOrder) {
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
  return {
    scope: scopeOf(rule),
    grant: {
      allowed: true,
      transform,
      decidedBy: {
        rule: { place, priority, ...(description !== undefined && { description }) },
      },
    },
  };
}
