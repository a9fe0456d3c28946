import type { CheckAccessRequest } from "../../../gen/latchkey/v1/access_service_pb.js";
import type { Decision } from "../../../src/access/decide.js";
import { type DenialReason, explainDenial } from "../../../src/access/explain.js";
import type { Subject } from "./subject.js";
import type { Judgement } from "./verdict.js";

/** What the service would say of a key of the subject, in its words. */
export function foresee(
  { application, session }: Subject,
  request: CheckAccessRequest,
  decision: Decision,
  refusal: DenialReason | undefined,
): Judgement {
  const reason = refusal ?? (decision.allowed ? undefined : decision.reason);
  if (reason === undefined) {
    return decision;
  }
  const detail = application && explainDenial(reason, { application, session }, request);
  return { allowed: false, reason, ...(detail !== undefined && { detail }) };
}
