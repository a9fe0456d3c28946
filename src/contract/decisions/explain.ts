import type { CheckAccessRequest } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { ConditionRecord, Grants, RuleRecord } from "../grants.js";
import { quote } from "../problems.js";
import { compileGrants, type Decision, decide, inOrderOfTrying, type LimitedBy } from "./decide.js";
import type { PlaceRefusal } from "./restrictions.js";
import { covers, scopeOf, type Token, withSlashes } from "./scope.js";

/** Why a check is denied, by words that never change their meaning. */
export type DenialReason =
  | "unknown_key"
  | "expired"
  | "disabled"
  | PlaceRefusal
  | "not_authorized"
  | "permission_missing"
  | "no_rule_matches";

/** A denial, and on which side it is where its subject is a session. */
interface DenialFacts {
  readonly reason: DenialReason;
  readonly limitedBy?: LimitedBy | undefined;
}

/** Whom a check is about. */
interface DeniedSubject extends Named {
  readonly authorizer?: (Named["application"] & { readonly disabled: boolean }) | undefined;
}

/** What a person is told of a denial: why, and what would have to be granted. */
export function explainDenial(
  { reason, limitedBy }: DenialFacts,
  subject: DeniedSubject | undefined,
  request: Omit<CheckAccessRequest, "key" | "$typeName">,
): string {
  const { permission, token, origin, address } = request;
  if (!subject) {
    return (
      "The key is none of this tenant that works: mistyped, replaced, deleted or long expired. " +
      "Ask its owner for the present one."
    );
  }
  const { authorizer } = subject;
  if (authorizer && limitedBy === "authorizer") {
    const why = explainDenial({ reason }, { application: authorizer }, request);
    return `${why} It authorized the session, which may do no more than its authorizer.`;
  }
  const name = nameOf(subject);
  switch (reason) {
    case "expired":
      return `The key has expired; it belonged to ${name}. Ask for a new one.`;
    case "disabled":
      return authorizer?.disabled
        ? `The key belongs to ${name}, and ${nameOf({ application: authorizer })}, which authorized it, is disabled for now. Enable that application to let it work again.`
        : `The key belongs to ${name}, which is disabled for now. Enable the application to let it work again.`;
    case "origin_not_allowed":
      return origin === undefined
        ? `The key belongs to ${name}, which may be used from certain origins only: pass the Origin header that came with it as origin.`
        : `The key belongs to ${name}, which may not be used from the origin ${quote(origin)}: add it to the allowed_origins of the application.`;
    case "address_not_allowed":
      return address === undefined
        ? `The key belongs to ${name}, which may be used from certain addresses only: pass the one that it came from as address.`
        : `The key belongs to ${name}, which may not be used from the address ${quote(address)}: add it to the allowed_cidrs of the application.`;
    case "not_authorized":
      return `The key belongs to ${name}, which has no access before a backend authorizes it.`;
    case "no_rule_matches":
      return token
        ? `The rules of ${name} that list ${permission} are not about this token: grant ` +
            `${permission} in a rule that matches it, or bare.`
        : `The rules of ${name} that list ${permission} are about certain tokens: say which ` +
            `token, or grant ${permission} bare.`;
    default:
      return `${capitalize(name)} does not hold ${permission}: grant it bare or in a rule.`;
  }
}

function capitalize(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

/** What a caller is named by. */
interface Named {
  readonly application: { readonly id: string; readonly type: string; readonly name: string };
  readonly session?: object | undefined;
}

/** The caller in a sentence. */
export function nameOf({ application, session }: Named): string {
  const owner = `the ${application.type} application "${application.name}" (${application.id})`;
  return session ? `a session of ${owner}` : owner;
}

/** What became of a grant when it was tried. */
export interface Step {
  readonly outcome: "decides" | "does_not_match" | "not_reached";
  /** Why it matches, or all that keeps it from it; told also where it was not reached. */
  readonly why: readonly string[];
}

/** What became of a rule. */
interface RuleStep extends Step {
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
