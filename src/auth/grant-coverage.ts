import { inOrderOfTrying, rankOfTransform } from "../contract/decisions/decide.js";
import { doOverlap, isWithin, type Scope, scopeOf } from "../contract/decisions/scope.js";
import type { Grants, RuleRecord } from "../contract/grants.js";
import { quote } from "../contract/problems.js";

/** A permission that no grant covers. */
export interface UncoveredGrant {
  readonly permission: string;
  /** Where it stands, for example `rules[0].permissions[1]`. */
  readonly field: string;
  /** What it would give, in words. */
  readonly text: string;
}

/**
 * What is given beyond what a giver has.
 *
 * A grant is covered by a permission that the giver holds directly, whatever
 * it is about. A rule of the giver covers what it is about and what is inside
 * of that, with a transform that reveals no more; where an earlier rule of the
 * giver decides about a part of it, that one must reveal as much too.
 *
 * What the receiver has already is not given. It must then decide about
 * nothing that it did not decide about before: all that came before it is
 * still there, and still comes before it.
 */
export function uncoveredGrants(
  own: Grants,
  given: Grants,
  current: Grants = { permissions: [], rules: [] },
): UncoveredGrant[] {
  const covering = decidersOf(own);
  const known = decidersOf(current);
  return [...decidersOf(given)].flatMap(([permission, deciders]) =>
    own.permissions.includes(permission)
      ? []
      : deciders.filter(
          (decider, at) =>
            !isCovered(decider, covering.get(permission) ?? []) &&
            !isKept(decider, deciders.slice(0, at), known.get(permission) ?? []),
        ),
  );
}

/** What decides about a permission: a rule, or at last the permission where it is granted directly. */
interface Decider extends UncoveredGrant {
  readonly scope: Scope;
  readonly transform: string;
  readonly isRule: boolean;
}

/** A permission that is granted directly may be given on with any transform, so that it counts as the one that reveals most. */
const everything = { scope: { tokensOnly: false }, transform: "reveal", isRule: false } as const;

/** By permission, what decides about it, in the order in which it does. */
function decidersOf({ permissions, rules }: Grants): Map<string, Decider[]> {
  const deciders = new Map<string, Decider[]>();
  const add = (decider: Decider) => {
    const others = deciders.get(decider.permission);
    if (others) {
      others.push(decider);
    } else {
      deciders.set(decider.permission, [decider]);
    }
  };
  for (const { rule, place } of inOrderOfTrying(rules)) {
    const scope = scopeOf(rule);
    // What nothing can meet the conditions of gives nothing.
    if (scope) {
      rule.permissions.forEach((permission, at) => {
        const field = `rules[${place}].permissions[${at}]`;
        const text = textOf(permission, rule);
        add({ permission, field, text, scope, transform: rule.transform, isRule: true });
      });
    }
  }
  permissions.forEach((permission, at) => {
    add({ permission, field: `permissions[${at}]`, text: `${permission} directly`, ...everything });
  });
  return deciders;
}

function textOf(permission: string, { container, transform }: RuleRecord): string {
  const where = container === undefined ? "on everything" : `in ${quote(container)}`;
  return `${permission} ${where} with ${transform}`;
}

function isCovered(given: Decider, own: readonly Decider[]): boolean {
  for (const { scope, transform } of own) {
    if (doOverlap(given.scope, scope)) {
      if (rankOfTransform(given.transform) > rankOfTransform(transform)) {
        return false;
      }
      if (isWithin(given.scope, scope)) {
        return true;
      }
    }
  }
  return false;
}

function isKept(given: Decider, before: readonly Decider[], known: readonly Decider[]): boolean {
  const at = known.findIndex((each) => isSame(each, given));
  return (
    at >= 0 && known.slice(0, at).every((earlier) => before.some((each) => isSame(each, earlier)))
  );
}

function isSame(one: Decider, other: Decider): boolean {
  return (
    one.isRule === other.isRule &&
    one.transform === other.transform &&
    isWithin(one.scope, other.scope) &&
    isWithin(other.scope, one.scope)
  );
}
