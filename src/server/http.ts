import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Call } from "../caller.js";
import { type Problem, toProblem } from "../errors.js";
import { problemMediaType, problemUri } from "../problem-catalogue.js";

/** A request over HTTP/1.1 or HTTP/2. */
export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** A request and its answer, with what is known of the call. */
export interface Exchange {
  readonly request: Request;
  readonly response: Response;
  readonly call: Call;
  /** The path without the query. */
  readonly path: string;
  /** The query without its question mark. */
  readonly query: string;
}

type AnswerHeaders = Readonly<Record<string, string | number>>;

export function send(
  { request, response }: Pick<Exchange, "request" | "response">,
  status: number,
  headers: AnswerHeaders = {},
  body = "",
): void {
  if (response.headersSent || response.destroyed) {
    return;
  }
  const length = status === 204 ? {} : { "content-length": Buffer.byteLength(body) };
  response.writeHead(status, { ...headers, ...length });
  response.end(request.method === "HEAD" || status === 204 ? "" : body);
}

/** Asks a caller that waits to be asked for its body. */
export function askForBody({ request, response }: Exchange): void {
  const isWaiting = request.headers.expect?.toLowerCase() === "100-continue";
  if (isWaiting && request.httpVersion !== "1.0" && !response.destroyed) {
    response.writeContinue();
  }
}

export function sendJson(exchange: Exchange, status: number, json: string): void {
  send(exchange, status, { "content-type": "application/json" }, json);
}

/** Answers with a problem body, whatever was thrown. */
export function sendProblem(exchange: Exchange, reason: unknown): void {
  const problem = toProblem(reason);
  const { headers, retryAfter, status } = problem;
  const retry = retryAfter === undefined ? {} : { "retry-after": Math.ceil(retryAfter / 1000) };
  send(
    exchange,
    status,
    { ...headers, ...retry, "content-type": problemMediaType },
    problemBody(problem, exchange.call.requestId),
  );
}

/** A problem as the body of an answer, after RFC 9457. */
export function problemBody(
  { word, status, title, rawMessage, violations }: Problem,
  requestId: string,
): string {
  return JSON.stringify({
    type: problemUri(word),
    title,
    status,
    detail: rawMessage,
    code: word,
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

/** The headers of a request, without the pseudo-headers of HTTP/2. */
export function headersOf(request: Request): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    if (value !== undefined && !name.startsWith(":")) {
      headers.set(name, Array.isArray(value) ? value.join(", ") : value);
    }
  }
  return headers;
}
