import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.js";
import { groupByField } from "./problems.js";

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
  /** Milliseconds after which the same call may succeed. */
  readonly retryAfter?: number | undefined;
}

/** Reads the error of a call over any protocol. */
export function problemOf(thrown: unknown): ProblemReport {
  const error = ConnectError.from(thrown);
  const [info] = error.findDetails(ErrorInfoSchema);
  const [badRequest] = error.findDetails(BadRequestSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const violations = (badRequest?.fieldViolations ?? []).map(({ field, description }) => ({
    field,
    message: description,
  }));
  return {
    code: info?.reason.toLowerCase(),
    detail: error.rawMessage,
    requestId: info?.metadata.request_id,
    errors: groupByField(violations),
    retryAfter: retry?.retryDelay && durationMs(retry.retryDelay),
  };
}
