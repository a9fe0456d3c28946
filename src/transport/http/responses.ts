import { problemMediaType } from "../../contract/problems.js";
import { methodNotAllowed, problemBody, toProblem } from "../../errors.js";
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

/** Sends whatever was thrown as a problem body, with its headers and others. */
export function sendProblem(exchange: Exchange, reason: unknown, others: HeaderList = []): void {
  const problem = toProblem(reason);
  const { headers, status, problemCode } = problem;
  exchange.problemCode = problemCode;
  exchange.send(
    status,
    [...others, ...Object.entries(headers).flat(), "content-type", problemMediaType],
    // As bytes: with a string, Node writes the headers in its encoding.
    Buffer.from(problemBody(problem, exchange.requestId)),
  );
}
