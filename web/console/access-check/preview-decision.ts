import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { AccessRule } from "../../../gen/latchkey/v1/access_rule_pb.js";
import type { CheckAccessRequest } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { Session } from "../../../gen/latchkey/v1/session_service_pb.js";
import { type Decision, stricterOf } from "../../../src/contract/decisions/decide.js";
import { type DenialReason, explainDenial } from "../../../src/contract/decisions/explain.js";
import { createRestrictionCheck } from "../../../src/contract/decisions/restrictions.js";
import type { Principal } from "./principal.js";

/** The decision by the grants of one side. */
export interface GrantDecision {
  readonly allowed: boolean;
  readonly transform?: string | undefined;
  readonly decidedBy?: DecidedBy | undefined;
  readonly reason?: string | undefined;
}

/** A decision of the service, or a preview. */
export interface AccessDecision extends GrantDecision {
  readonly detail?: string | undefined;
  /** Of sessions, if their grants were evaluated. */
  readonly bySession?: GrantDecision | undefined;
  readonly byAuthorizer?: GrantDecision | undefined;
  readonly limitedBy?: string | undefined;
}

export interface DecidedBy {
  readonly rule?: Pick<AccessRule, "priority" | "description"> | undefined;
  readonly permission?: string | undefined;
}

/** The decisions by the grants of the principal and of its authorizer. */
interface GrantDecisions {
  readonly own: Decision;
  readonly byAuthorizer?: Decision | undefined;
}

/** Computes the decision that the service would make, from its grants by side. */
export function previewDecision(
  principal: Principal,
  request: CheckAccessRequest,
  { own, byAuthorizer }: GrantDecisions,
  now: number,
): AccessDecision {
  const { application, session, authorizer } = principal;
  const denial = findDenialBeforeRules(principal, request, now);
  const limited = byAuthorizer && stricterOf(own, byAuthorizer);
  const decision = limited?.decision ?? own;
  const reason = denial ?? (decision.allowed ? undefined : decision.reason);
  const limitedBy = denial ? undefined : limited?.limitedBy;
  const sides = denial || !byAuthorizer ? {} : { bySession: own, byAuthorizer };
  if (reason === undefined) {
    return { ...decision, ...sides, limitedBy };
  }
  const by = authorizer?.application;
  const denied = application && {
    application,
    session,
    authorizer: by && { ...by, disabled: by.status === "disabled" },
  };
  const detail = denied && explainDenial({ reason, limitedBy }, denied, request);
  return { allowed: false, reason, limitedBy, ...sides, ...(detail !== undefined && { detail }) };
}

/** The reason to refuse the key before rules are evaluated, if any. */
function findDenialBeforeRules(
  { application, session, authorizer }: Principal,
  source: Pick<CheckAccessRequest, "origin" | "address">,
  now: number,
): DenialReason | undefined {
  const expiring = [application, session, authorizer?.application];
  if (expiring.some((it) => hasExpired(it, now))) {
    return "expired";
  }
  if ([application, authorizer?.application].some((it) => it?.status === "disabled")) {
    return "disabled";
  }
  const denial =
    application && createRestrictionCheck().findDenial({ ...application, version: 0 }, source);
  return denial ?? (session?.state === "unauthorized" ? "not_authorized" : undefined);
}

function hasExpired(it: Pick<Session, "expiresAt"> | undefined, now: number): boolean {
  return it?.expiresAt !== undefined && timestampMs(it.expiresAt) <= now;
}

const ruleReasons: readonly string[] = ["permission_missing", "no_rule_matches"];

export function isDeniedBeforeRules(reason: string | undefined): boolean {
  return reason !== undefined && !ruleReasons.includes(reason);
}
