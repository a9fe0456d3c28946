import type { ConditionRecord, Grants, RuleRecord } from "../store/store.js";
import { compileGrants, inOrderOfTrying } from "./compile-grants.js";
import { type Decision, decide } from "./decide.js";
import { covers, scopeOf, type Token, withSlashes } from "./scope.js";

/** What became of a grant when it was tried. */
export interface Step {
  readonly outcome: "decides" | "does_not_match" | "not_reached";
  /** Why it matches, or all that keeps it from it; told also where it was not reached. */
  readonly why: readonly string[];
}

/** What became of a rule. */
export interface RuleStep extends Step {
  /** Its place in the list as it was given. The first is 0. */
  readonly place: number;
}

/** How a decision comes about: what is tried, in this order. */
export interface Explanation {
  readonly decision: Decision;
  readonly rules: readonly RuleStep[];
  /** The permission on everything, which is tried last. */
  readonly bare: Step;
}

/** What is asked of grants, as {@link decide} takes it. */
export interface Asked {
  readonly permission: string;
  readonly token: Token | undefined;
  /** Whether the permission is one of this service itself. */
  readonly ownPermission: boolean;
}

/** Tells how a decision comes about, for people. Pages ask it too: it runs in browsers. */
export function explainRules(grants: Grants, asked: Asked): Explanation {
  const { permission, token, ownPermission } = asked;
  let isDecided = false;

  function step({ matches, why }: Finding): Step {
    if (isDecided) {
      return { outcome: "not_reached", why };
    }
    isDecided = matches;
    return { outcome: matches ? "decides" : "does_not_match", why };
  }

  return {
    decision: decide(compileGrants(grants), permission, token, ownPermission),
    rules: inOrderOfTrying(grants.rules).map(({ rule, place }) => ({
      place,
      ...step(tryRule(rule, asked)),
    })),
    bare: step(tryBare(grants, permission)),
  };
}

interface Finding {
  readonly matches: boolean;
  readonly why: readonly string[];
}

function tryBare({ permissions }: Grants, permission: string): Finding {
  const matches = permissions.includes(permission);
  const why = matches
    ? `${permission} is granted on everything`
    : `${permission} is not granted on everything`;
  return { matches, why: [why] };
}

function tryRule(rule: RuleRecord, { permission, token, ownPermission }: Asked): Finding {
  if (!rule.permissions.includes(permission)) {
    return { matches: false, why: [`does not list ${permission}`] };
  }
  const listed = `lists ${permission}`;
  if (!token && ownPermission) {
    return { matches: true, why: [`${listed}, which concerns no token`] };
  }
  const demands = demandsOf(rule);
  if (demands.length === 0) {
    return { matches: true, why: [`${listed} on everything`] };
  }
  if (!token) {
    return { matches: false, why: ["is about certain tokens, and none is named"] };
  }
  const unmet = demands.filter((demand) => !isMet(demand, token));
  return unmet.length === 0
    ? { matches: true, why: [listed, ...demands.map((demand) => inWords(demand, token, true))] }
    : { matches: false, why: unmet.map((demand) => inWords(demand, token, false)) };
}

/** One of the things that a rule asks of a token: that it is in a container, or meets a condition. */
type Demand = { readonly container: string } | ConditionRecord;

function demandsOf({ container, conditions }: RuleRecord): Demand[] {
  return [...(container === undefined ? [] : [{ container }]), ...conditions];
}

/** Asks the scope of a rule that demands this alone: a token that meets each demand meets all of them. */
function isMet(demand: Demand, token: Token): boolean {
  const scope = scopeOf(
    "container" in demand ? { ...demand, conditions: [] } : { conditions: [demand] },
  );
  return scope !== undefined && covers(scope, token);
}

function inWords(demand: Demand, token: Token, isMet: boolean): string {
  if ("container" in demand) {
    const place =
      token.container === undefined ? "a token without one" : withSlashes(token.container);
    return `container ${withSlashes(demand.container)} ${isMet ? "covers" : "does not cover"} ${place}`;
  }
  const { attribute, operator, value } = demand;
  const comparison = comparisons.get(operator);
  if ((attribute !== "id" && attribute !== "container") || !comparison) {
    return `${attribute} ${operator} ${value} is a condition that nothing can meet`;
  }
  const [holds, fails] = comparison;
  const actual = token[attribute];
  return actual === undefined
    ? `the token has no ${attribute} that ${holds} ${value}`
    : `${attribute} ${actual} ${isMet ? holds : fails} ${value}`;
}

/** How each operator reads where it holds, and where it does not. */
const comparisons: ReadonlyMap<string, readonly [holds: string, fails: string]> = new Map([
  ["equals", ["is", "is not"]],
  ["starts_with", ["starts with", "does not start with"]],
]);
