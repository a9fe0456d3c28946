import { Code } from "@connectrpc/connect";
import { expect } from "@jest/globals";
import { ApiFailure } from "../../support/api/api.js";

/** The two statuses of every refusal. */
const refusals = {
  invalid_request: { http: 400, grpc: Code.InvalidArgument },
  unauthenticated: { http: 401, grpc: Code.Unauthenticated },
  permission_denied: { http: 403, grpc: Code.PermissionDenied },
  origin_not_allowed: { http: 403, grpc: Code.PermissionDenied },
  address_not_allowed: { http: 403, grpc: Code.PermissionDenied },
  application_not_found: { http: 404, grpc: Code.NotFound },
  key_not_found: { http: 404, grpc: Code.NotFound },
  session_not_found: { http: 404, grpc: Code.NotFound },
  too_many_keys: { http: 409, grpc: Code.FailedPrecondition },
  last_manager: { http: 409, grpc: Code.FailedPrecondition },
  idempotency_conflict: { http: 409, grpc: Code.Aborted },
  idempotency_key_reused: { http: 422, grpc: Code.InvalidArgument },
  version_mismatch: { http: 412, grpc: Code.FailedPrecondition },
  session_quota_reached: { http: 429, grpc: Code.ResourceExhausted },
  nonce_not_found: { http: 404, grpc: Code.NotFound },
  nonce_used: { http: 409, grpc: Code.AlreadyExists },
} as const;

export type Refusal = keyof typeof refusals;
export type Statuses = "http" | "grpc";

/** Checks that a call is refused for a reason, with the status for it, and answers how. */
export async function expectRefused(
  call: Promise<unknown>,
  reason: Refusal,
  statuses: Statuses,
): Promise<ApiFailure> {
  const failure = await call.then(
    () => new Error("the call was not refused"),
    (error) => error,
  );
  expect(failure).toBeInstanceOf(ApiFailure);
  expect(failure).toMatchObject({ reason, status: refusals[reason][statuses] });
  expect(failure.requestId).not.toBe("");
  return failure as ApiFailure;
}
