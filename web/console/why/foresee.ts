import type { CheckAccessRequest } from "../../../gen/latchkey/v1/access_service_pb.js";
import { type Decision, stricterOf } from "../../../src/contract/decisions/decide.js";
import { type DenialReason, explainDenial } from "../../../src/contract/decisions/explain.js";
import type { Subject } from "./subject.js";
import type { Judgement } from "./verdict.js";

/** What the subject's own grants say, and what those of its authorizer say, where they limit it. */
export interface Decisions {
  readonly own: Decision;
  readonly byAuthorizer?: Decision | undefined;
}

/** What the service would say of a key of the subject, in its words. */
export function foresee(
  { application, session, authorizer }: Subject,
  request: CheckAccessRequest,
  { own, byAuthorizer }: Decisions,
  refusal: DenialReason | undefined,
): Judgement {
  const met = byAuthorizer && stricterOf(own, byAuthorizer);
  const decision = met?.decision ?? own;
  const reason = refusal ?? (decision.allowed ? undefined : decision.reason);
  const limitedBy = refusal ? undefined : met?.limitedBy;
  if (reason === undefined) {
    return { ...decision, limitedBy };
  }
  const by = authorizer?.application;
  const subject = application && {
    application,
    session,
    authorizer: by && { ...by, disabled: by.status === "disabled" },
  };
  const detail = subject && explainDenial({ reason, limitedBy }, subject, request);
  return { allowed: false, reason, limitedBy, ...(detail !== undefined && { detail }) };
}
