import { Code, ConnectError } from "@connectrpc/connect";
import { problemOf } from "../contract/problem-report.js";
import type { Decision } from "./decision.js";

/**
 * Denies access because a check failed. If Latchkey is unreachable, too slow or
 * returns an error, the guard fails closed: without a decision nothing is allowed.
 */
export function failClosed(error: unknown): Decision {
  const { code, detail } = problemOf(error);
  if (ConnectError.from(error).code === Code.InvalidArgument) {
    return deny("invalid_request", detail);
  }
  return deny("unavailable", `Latchkey cannot check the key (${code ?? "unreachable"}): ${detail}`);
}

/** A denial by the guard itself, without a call to the service. */
export function deny(reason: string, detail: string): Decision {
  return { allowed: false, reason, detail, source: "guard", staleness: 0 };
}
