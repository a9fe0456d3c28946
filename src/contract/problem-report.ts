import { ConnectError } from "@connectrpc/connect";
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from "../../gen/google/rpc/error_details_pb.js";

/** What the service said about a call that it refused. */
export interface ProblemReport {
  /** The stable word, for example `nonce_used`. Absent where the service was not reached. */
  readonly code?: string | undefined;
  /** What happened and what to do about it, for people. */
  readonly detail: string;
  /** What an operator finds the call in the logs by. */
  readonly requestId?: string | undefined;
  /** What is wrong, by field. */
  readonly errors: Readonly<Record<string, readonly string[]>>;
  /** Milliseconds after which the same call may succeed. */
  readonly retryAfter?: number | undefined;
}

/** Reads what was thrown by a call, whichever protocol it went over. */
export function problemOf(thrown: unknown): ProblemReport {
  const error = ConnectError.from(thrown);
  const [info] = error.findDetails(ErrorInfoSchema);
  const [badRequest] = error.findDetails(BadRequestSchema);
  const [retry] = error.findDetails(RetryInfoSchema);
  const errors = new Map<string, string[]>();
  for (const { field, description } of badRequest?.fieldViolations ?? []) {
    errors.set(field, [...(errors.get(field) ?? []), description]);
  }
  return {
    code: info?.reason.toLowerCase(),
    detail: error.rawMessage,
    requestId: info?.metadata.request_id,
    errors: Object.fromEntries(errors),
    retryAfter: retry?.retryDelay && millisecondsOf(retry.retryDelay),
  };
}

function millisecondsOf({ seconds, nanos }: { seconds: bigint; nanos: number }): number {
  return Number(seconds) * 1000 + nanos / 1_000_000;
}
