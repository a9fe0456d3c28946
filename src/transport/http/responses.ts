import { problemMediaType, problemUri } from "../../contract/problems.js";
import { methodNotAllowed, type Problem, toProblem } from "../../errors.js";
import type { Exchange } from "./exchange.js";
import type { HeaderList } from "./headers.js";

const jsonType: HeaderList = ["content-type", "application/json"];

export function sendJson(exchange: Exchange, status: number, json: Buffer | string): void {
  exchange.send(status, jsonType, json);
}

export function requireGetOrHead({ method }: Exchange): void {
  if (method !== "GET" && method !== "HEAD") {
    throw methodNotAllowed(["GET", "HEAD"]);
  }
}

/** Sends whatever was thrown as a problem body. */
export function sendProblem(exchange: Exchange, reason: unknown): void {
  const problem = toProblem(reason);
  const { headers, status, problemCode } = problem;
  exchange.problemCode = problemCode;
  exchange.send(
    status,
    [...Object.entries(headers).flat(), "content-type", problemMediaType],
    problemBody(problem, exchange.requestId),
  );
}

/** A problem as a response body (RFC 9457). */
export function problemBody(
  { problemCode, status, title, rawMessage, violations }: Problem,
  requestId: string,
): string {
  return JSON.stringify({
    type: problemUri(problemCode),
    title,
    status,
    detail: rawMessage,
    code: problemCode,
    request_id: requestId,
    ...(violations.length > 0 && { errors: groupByField(violations) }),
  });
}

function groupByField(
  violations: readonly { field: string; message: string }[],
): Record<string, string[]> {
  const byField = new Map<string, string[]>();
  for (const { field, message } of violations) {
    byField.set(field, [...(byField.get(field) ?? []), message]);
  }
  return Object.fromEntries(byField);
}
