import { inEvaluationOrder, rankOfTransform } from "../contract/decisions/decide.js";
import { isWithin, overlap, type Scope, scopeOf } from "../contract/decisions/scope.js";
import type { Grants, RuleRecord } from "../contract/grants.js";
import { quote } from "../contract/problems.js";

/** A permission that no grant covers. */
interface UncoveredGrant {
  readonly permission: string;
  /** Its path, for example `rules[0].permissions[1]`. */
  readonly field: string;
  /** Describes what it would grant. */
  readonly text: string;
}

/**
 * Returns the requested grants that the grantor's own grants do not cover.
 *
 * A directly granted permission covers every grant of that permission. A rule
 * covers grants within its scope whose transform reveals no more. If an earlier
 * rule of the grantor overlaps the grant, that rule must reveal as much too.
 *
 * Grants that the target already has need no coverage if every grant that
 * preceded them still precedes them. If one was removed, they would apply to
 * more tokens than before.
 */
export function uncoveredGrants(
  own: Grants,
  requested: Grants,
  current: Grants = { permissions: [], rules: [] },
): UncoveredGrant[] {
  const covering = decidersOf(own);
  const existing = decidersOf(current);
  return [...decidersOf(requested)].flatMap(([permission, deciders]) =>
    own.permissions.includes(permission)
      ? []
      : deciders.filter(
          (decider, index) =>
            !isCovered(decider, covering.get(permission) ?? []) &&
            !isUnchanged(decider, deciders.slice(0, index), existing.get(permission) ?? []),
        ),
  );
}

/** A grant that can decide about a permission: a rule, or the directly granted permission. */
interface Decider extends UncoveredGrant {
  readonly scope: Scope;
  readonly transform: string;
  readonly isRule: boolean;
}

/** A directly granted permission covers any transform, so it counts as `reveal`. */
const everything = { scope: { tokensOnly: false }, transform: "reveal", isRule: false } as const;

/** The deciders by permission, in evaluation order. */
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
  for (const { rule, index } of inEvaluationOrder(rules)) {
    const scope = scopeOf(rule);
    // A rule that no token can match grants nothing.
    if (scope) {
      rule.permissions.forEach((permission, permissionIndex) => {
        const field = `rules[${index}].permissions[${permissionIndex}]`;
        const text = textOf(permission, rule);
        add({ permission, field, text, scope, transform: rule.transform, isRule: true });
      });
    }
  }
  permissions.forEach((permission, index) => {
    add({
      permission,
      field: `permissions[${index}]`,
      text: `${permission} directly`,
      ...everything,
    });
  });
  return deciders;
}

function textOf(permission: string, { container, transform }: RuleRecord): string {
  const where = container === undefined ? "on everything" : `in ${quote(container)}`;
  return `${permission} ${where} with ${transform}`;
}

function isCovered(requested: Decider, own: readonly Decider[]): boolean {
  for (const { scope, transform } of own) {
    if (overlap(requested.scope, scope)) {
      if (rankOfTransform(requested.transform) > rankOfTransform(transform)) {
        return false;
      }
      if (isWithin(requested.scope, scope)) {
        return true;
      }
    }
  }
  return false;
}

/** Whether the target already has the grant, behind the same earlier grants. */
function isUnchanged(
  requested: Decider,
  before: readonly Decider[],
  existing: readonly Decider[],
): boolean {
  const index = existing.findIndex((each) => isSame(each, requested));
  return (
    index >= 0 &&
    existing.slice(0, index).every((earlier) => before.some((each) => isSame(each, earlier)))
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
