import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { Code } from "@connectrpc/connect";
import { expect } from "@jest/globals";
import { validationRules } from "../../../src/contract/fields.js";

import { matchesPattern } from "../../../src/validation/patterns.js";
import { ApiFailure } from "../../support/api/api.js";

/** The HTTP and gRPC status of every reason. */
const refusals = {
  invalid_request: { http: 400, grpc: Code.InvalidArgument },
  unauthenticated: { http: 401, grpc: Code.Unauthenticated },
  permission_denied: { http: 403, grpc: Code.PermissionDenied },
  origin_not_allowed: { http: 403, grpc: Code.PermissionDenied },
  address_not_allowed: { http: 403, grpc: Code.PermissionDenied },
  application_not_found: { http: 404, grpc: Code.NotFound },
  key_not_found: { http: 404, grpc: Code.NotFound },
  event_not_found: { http: 404, grpc: Code.NotFound },
  session_not_found: { http: 404, grpc: Code.NotFound },
  too_many_keys: { http: 409, grpc: Code.FailedPrecondition },
  last_manager: { http: 409, grpc: Code.FailedPrecondition },
  external_id_taken: { http: 409, grpc: Code.AlreadyExists },
  idempotency_conflict: { http: 409, grpc: Code.Aborted },
  idempotency_key_reused: { http: 422, grpc: Code.InvalidArgument },
  version_mismatch: { http: 412, grpc: Code.FailedPrecondition },
  session_quota_reached: { http: 429, grpc: Code.ResourceExhausted },
  nonce_not_found: { http: 404, grpc: Code.NotFound },
  nonce_used: { http: 409, grpc: Code.AlreadyExists },
} as const;

export type Refusal = keyof typeof refusals;
export type Statuses = "http" | "grpc";

/** Expects a call to fail for a reason, with the status for it, and returns the failure. */
export type ExpectRefused = (call: Promise<unknown>, reason: Refusal) => Promise<ApiFailure>;

export function createExpectRefused(statuses: Statuses): ExpectRefused {
  return async (call, reason) => {
    const failure = await call.then(
      () => new Error("the call was not refused"),
      (error) => error,
    );
    expect(failure).toBeInstanceOf(ApiFailure);
    expect(failure).toMatchObject({ reason, status: refusals[reason][statuses] });
    expect(failure.requestId).not.toBe("");
    return failure as ApiFailure;
  };
}

const validator = createValidator({ registry: validationRules, regexMatch: matchesPattern });

/** Expects a message to satisfy the validation rules of its schema, and returns it. */
export function expectValid<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): MessageShape<Desc> {
  const { kind, error } = validator.validate(schema, message);
  expect({ kind, error }).toEqual({ kind: "valid", error: undefined });
  return message;
}
