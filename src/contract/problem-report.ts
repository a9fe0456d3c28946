import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.js";
import { type FieldViolation, groupByField } from "./problems.js";

/** A refused call, as the service reported it. */
export interface ProblemReport {
  /** The stable code, for example `nonce_used`. Absent if the service was not reached. */
  readonly code?: string | undefined;
  /** What happened and how to fix it, for people. */
  readonly detail: string;
  /** Identifies the call in the logs. */
  readonly requestId?: string | undefined;
  /** Validation errors by field. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  /** The same with the code of each broken rule, for example `string.max_len`. */
  readonly violations: readonly Required<FieldViolation>[];
  /** The permissions that the caller lacks. */
  readonly missingPermissions: readonly string[];
  /** The version that a conditional change must name. */
  readonly currentVersion?: string | undefined;
  /** Milliseconds after which the same call may succeed. */
  readonly retryAfter?: number | undefined;
}

/** Reads the error of a call over any protocol. */
export function problemOf(thrown: unknown): ProblemReport {
  const error = ConnectError.from(thrown);
  const [info] = error.findDetails(ErrorInfoSchema);
  const [badRequest] = error.findDetails(BadRequestSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const violations = (badRequest?.fieldViolations ?? []).map(({ field, description, reason }) => ({
    field,
    message: description,
    code: reason,
  }));
  const { request_id, missing_permissions, current_version } = info?.metadata ?? {};
  return {
    code: info?.reason.toLowerCase(),
    detail: error.rawMessage,
    requestId: request_id,
    errors: groupByField(violations),
    violations,
    missingPermissions: missing_permissions?.split(",") ?? [],
    currentVersion: current_version,
    retryAfter: retry?.retryDelay && durationMs(retry.retryDelay),
  };
}
