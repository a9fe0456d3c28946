import { create } from "@bufbuild/protobuf";
import {
  type CheckAccessRequest,
  CheckAccessRequestSchema,
} from "../../../../gen/latchkey/v1/access_service_pb.js";
import {
  type BatchEvaluateRequest,
  type EvaluateRequest,
  EvaluateRequestSchema,
  type EvaluationAction,
  type EvaluationResource,
  type EvaluationSubject,
} from "../../../../gen/latchkey/v1/authzen_service_pb.js";
import type { Problem } from "../../../errors.js";
import { validateMessage } from "../../../validation/validate.js";
import type { CheckResult } from "../check.js";

/** The fields of a valid evaluation that decide. */
type Evaluation = Pick<EvaluateRequest, "subject" | "action" | "resource" | "context">;

/** Maps a valid evaluation to an access check, which may be invalid. */
export function toCheck({ subject, action, resource, context }: Evaluation): CheckAccessRequest {
  const { type, id, properties } = resource as EvaluationResource;
  const { name } = action as EvaluationAction;
  return create(CheckAccessRequestSchema, {
    principal: toPrincipal(subject as EvaluationSubject),
    permission: name.includes(":") ? name : `${type}:${name}`,
    token: { id, container: properties?.container },
    origin: context?.origin,
    address: context?.address,
  });
}

function toPrincipal({ type, id }: EvaluationSubject): CheckAccessRequest["principal"] {
  switch (type) {
    case "application":
      return { case: "applicationId", value: id };
    case "session":
      return { case: "sessionId", value: id };
    case "api_key":
      return { case: "key", value: id };
    default:
      return { case: "externalId", value: id };
  }
}

/** Maps an evaluation of a batch, completed by its defaults, to a check, or to the problem of the evaluation. */
export function completeCheck(
  evaluation: EvaluateRequest,
  defaults: BatchEvaluateRequest,
): CheckAccessRequest | Problem {
  const complete = withDefaults(evaluation, defaults);
  return validateMessage(EvaluateRequestSchema, complete) ?? toCheck(complete);
}

/** Completes an evaluation by the defaults of its batch. Each replaces a field as a whole. */
export function withDefaults(
  { subject, action, resource, context }: Partial<Evaluation>,
  defaults: BatchEvaluateRequest,
): EvaluateRequest {
  return {
    $typeName: "latchkey.v1.EvaluateRequest",
    subject: subject ?? defaults.subject,
    action: action ?? defaults.action,
    resource: resource ?? defaults.resource,
    context: context ?? defaults.context,
  };
}

/** The name of the action that {@link toCheck} maps to a permission on a type of resource. */
export function toActionName(permission: string, resourceType: string): string {
  const name = permission.slice(resourceType.length + 1);
  return name.includes(":") ? permission : name;
}

type DecisionFacts = Pick<CheckResult, "transform" | "reason" | "detail">;

interface Decision {
  readonly decision: boolean;
  readonly context: DecisionFacts;
}

export function toDecision({
  allowed,
  transform,
  reason,
  detail,
}: Pick<CheckResult, "allowed"> & DecisionFacts): Decision {
  return { decision: allowed, context: { transform, reason, detail } };
}
