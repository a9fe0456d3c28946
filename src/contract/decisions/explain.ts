import type { CheckAccessRequest } from "../../../gen/latchkey/v1/access_service_pb.js";
import { hasNoAddress } from "../../lib/networks.js";
import type { ConditionRecord, Grants, RuleRecord } from "../grants.js";
import { quote } from "../problems.js";
import {
  compileGrants,
  type Decision,
  decide,
  inEvaluationOrder,
  type LimitedBy,
} from "./decide.js";
import type { RestrictionDenial } from "./restrictions.js";
import { covers, scopeOf, type Token, withSlashes } from "./scope.js";

/** Stable reasons for a denied check. */
export type DenialReason =
  | "unknown_key"
  | "unknown_principal"
  | "expired"
  | "disabled"
  | RestrictionDenial
  | "not_authorized"
  | "permission_missing"
  | "no_rule_matches";

/** A denial. For a session, `limitedBy` names whose grants denied it. */
interface DenialInput {
  readonly reason: DenialReason;
  readonly limitedBy?: LimitedBy | undefined;
}

/** The owner of the checked key. */
interface DeniedPrincipal extends Named {
  readonly authorizer?: (Named["application"] & { readonly disabled: boolean }) | undefined;
}

/** A request for the principal, or for one that is not stored yet. */
type ExplainedRequest = Omit<CheckAccessRequest, "principal" | "$typeName"> &
  Partial<Pick<CheckAccessRequest, "principal">>;

/** Explains a denial to people: the reason, and how to allow the request. */
export function explainDenial(
  { reason, limitedBy }: DenialInput,
  principal: DeniedPrincipal | undefined,
  request: ExplainedRequest,
): string {
  const { permission, token, origin, address } = request;
  if (!principal && reason === "unknown_principal") {
    return `The tenant has no ${describeUnknown(request)}: it may have expired or been deleted.`;
  }
  if (!principal) {
    return (
      "The key is not a valid key of this tenant: it may be mistyped, replaced, deleted or expired " +
      "long ago. Get the current key from its owner."
    );
  }
  const { authorizer } = principal;
  if (authorizer && limitedBy === "authorizer") {
    const explanation = explainDenial({ reason }, { application: authorizer }, request);
    return `${explanation} It authorized the session, and a session can do no more than its authorizer.`;
  }
  const name = nameOf(principal);
  switch (reason) {
    case "expired":
      return `The key has expired. It belonged to ${name}. Get a new key.`;
    case "disabled":
      return authorizer?.disabled
        ? `The key belongs to ${name}, which was authorized by ${nameOf({ application: authorizer })}. That application is disabled: enable it to make the key valid again.`
        : `The key belongs to ${name}, which is disabled. Enable the application to make the key valid again.`;
    case "origin_not_allowed":
      return origin === undefined
        ? `The key belongs to ${name}, which is restricted to certain origins: set the field origin to the Origin header of the request.`
        : `The key may not be used from the origin ${quote(origin)}. It belongs to ${name}: add the origin to the allowed_origins of the application.`;
    case "address_not_allowed":
      return address === undefined || hasNoAddress(address)
        ? `The key belongs to ${name}, which is restricted to certain addresses: set the field address to the IP address of the client.`
        : `The key may not be used from the address ${quote(address)}. It belongs to ${name}: add the address to the allowed_cidrs of the application.`;
    case "not_authorized":
      return `The key belongs to ${name}, which has no access until a backend authorizes it.`;
    case "no_rule_matches":
      return token
        ? `The rules of ${name} that list ${permission} do not match this token: grant ` +
            `${permission} in a rule that matches it, or directly.`
        : `The rules of ${name} that list ${permission} match certain tokens only: name the ` +
            `token, or grant ${permission} directly.`;
    default:
      return `${capitalize(name)} does not hold ${permission}: grant it directly or in a rule.`;
  }
}

function capitalize(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

/** The parts of a caller that name it. */
interface Named {
  readonly application: { readonly id: string; readonly type: string; readonly name: string };
  readonly session?: object | undefined;
}

/** Names a caller in a sentence. */
export function nameOf({ application, session }: Named): string {
  const owner = `the ${application.type} application "${application.name}" (${application.id})`;
  return session ? `a session of ${owner}` : owner;
}

/** The result of evaluating one grant. */
export interface Step {
  readonly outcome: "decides" | "does_not_match" | "not_reached";
  /** Why the grant matches, or every reason why it does not. Present even if it was not reached. */
  readonly reasons: readonly string[];
}

interface RuleStep extends Step {
  /** The index of the rule in the original list. */
  readonly index: number;
}

/** The evaluation of a decision, step by step. */
export interface Explanation {
  readonly decision: Decision;
  readonly rules: readonly RuleStep[];
  /** The directly granted permission, which comes last. */
  readonly direct: Step;
}

/** The arguments of {@link decide}. */
export interface AccessQuery {
  readonly permission: string;
  readonly token: Token | undefined;
  /** Whether the permission is one of Latchkey's own. */
  readonly ownPermission: boolean;
}

/** Explains a decision to people. The console uses it too, so it must run in browsers. */
export function explainRules(grants: Grants, query: AccessQuery): Explanation {
  const { permission, token, ownPermission } = query;
  let isDecided = false;

  function step({ matches, reasons }: MatchResult): Step {
    if (isDecided) {
      return { outcome: "not_reached", reasons };
    }
    isDecided = matches;
    return { outcome: matches ? "decides" : "does_not_match", reasons };
  }

  return {
    decision: decide(compileGrants(grants), permission, token, ownPermission),
    rules: inEvaluationOrder(grants.rules).map(({ rule, index }) => ({
      index,
      ...step(tryRule(rule, query)),
    })),
    direct: step(tryDirectGrant(grants, permission)),
  };
}

interface MatchResult {
  readonly matches: boolean;
  readonly reasons: readonly string[];
}

function tryDirectGrant({ permissions }: Grants, permission: string): MatchResult {
  const matches = permissions.includes(permission);
  const reason = matches
    ? `${permission} is granted directly`
    : `${permission} is not granted directly`;
  return { matches, reasons: [reason] };
}

function tryRule(rule: RuleRecord, { permission, token, ownPermission }: AccessQuery): MatchResult {
  if (!rule.permissions.includes(permission)) {
    return { matches: false, reasons: [`does not list ${permission}`] };
  }
  const listed = `lists ${permission}`;
  if (!token && ownPermission) {
    return { matches: true, reasons: [`${listed}, which does not concern tokens`] };
  }
  const constraints = constraintsOf(rule);
  if (constraints.length === 0) {
    return { matches: true, reasons: [`${listed} on everything`] };
  }
  if (!token) {
    return { matches: false, reasons: ["matches certain tokens only, and no token is named"] };
  }
  const unmet = constraints.filter((constraint) => !isMet(constraint, token));
  return unmet.length === 0
    ? { matches: true, reasons: [listed, ...constraints.map((it) => inWords(it, token, true))] }
    : { matches: false, reasons: unmet.map((it) => inWords(it, token, false)) };
}

/** The container of a rule, or one of its conditions. */
type Constraint = { readonly container: string } | ConditionRecord;

function constraintsOf({ container, conditions }: RuleRecord): Constraint[] {
  return [...(container === undefined ? [] : [{ container }]), ...conditions];
}

/** Evaluates the scope of a rule with this constraint alone. */
function isMet(constraint: Constraint, token: Token): boolean {
  const scope = scopeOf(
    "container" in constraint ? { ...constraint, conditions: [] } : { conditions: [constraint] },
  );
  return scope !== undefined && covers(scope, token);
}

function inWords(constraint: Constraint, token: Token, isMet: boolean): string {
  if ("container" in constraint) {
    const path =
      token.container === undefined ? "a token without a container" : withSlashes(token.container);
    return `container ${withSlashes(constraint.container)} ${isMet ? "covers" : "does not cover"} ${path}`;
  }
  const { attribute, operator, value } = constraint;
  const comparison = comparisons.get(operator);
  if ((attribute !== "id" && attribute !== "container") || !comparison) {
    return `${attribute} ${operator} ${value} is a condition that no token can meet`;
  }
  const [holds, fails] = comparison;
  const actual = token[attribute];
  return actual === undefined
    ? `the token has no ${attribute}, and the rule requires that it ${holds} ${value}`
    : `${attribute} ${actual} ${isMet ? holds : fails} ${value}`;
}

/** The wording of each operator if it holds and if it fails. */
const comparisons: ReadonlyMap<string, readonly [holds: string, fails: string]> = new Map([
  ["equals", ["is", "is not"]],
  ["starts_with", ["starts with", "does not start with"]],
]);

function describeUnknown({ principal }: ExplainedRequest): string {
  switch (principal?.case) {
    case "externalId":
      return "application with this external id";
    case "sessionId":
      return "session with this id";
    default:
      return "application with this id";
  }
}
