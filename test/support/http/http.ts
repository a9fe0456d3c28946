import { type Agent, type OutgoingHttpHeaders, request } from "node:http";
import { connect } from "node:net";
import { expect } from "@jest/globals";
import { type FieldViolation, groupByField } from "../../../src/contract/problems.js";

/** A complete HTTP/1.1 response. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface HttpRequest {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
  /** Keeps connections open. */
  readonly agent?: Agent | undefined;
}

/** Sends a request, by default on a new connection. Adds only the headers host and content-length. */
export function send(
  { port }: { readonly port: number },
  path: string,
  { method = "GET", headers = {}, body, agent }: HttpRequest = {},
): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = request({
      host: "127.0.0.1",
      port,
      path,
      method,
      headers,
      agent: agent ?? false,
    });
    outgoing.on("response", (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on("data", (chunk) => chunks.push(chunk));
      incoming.on("end", () =>
        resolve({
          status: incoming.statusCode ?? 0,
          headers: incoming.headers as Record<string, string>,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** Only catches hangs: a busy machine can take many seconds. */
const timeout = 60_000;

/**
 * Writes bytes to a new connection and returns all responses when the server
 * closes it.
 */
export function sendRaw(
  { port }: { readonly port: number },
  ...parts: readonly (string | Uint8Array)[]
): Promise<HttpResponse[]> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    const chunks: Buffer[] = [];
    const timer = setTimeout(() => {
      socket.destroy();
      reject(new Error(`the server left the connection open after ${Buffer.concat(chunks)}`));
    }, timeout);
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(parseResponses(Buffer.concat(chunks).toString()));
    });
    for (const part of parts) {
      socket.write(part);
    }
  });
}

/** Sends at most one request as bytes and returns the first response. */
export async function exchangeRaw(
  server: { readonly port: number },
  ...parts: readonly (string | Uint8Array)[]
): Promise<HttpResponse> {
  const [response] = await sendRaw(server, ...parts);
  if (!response) {
    throw new Error("the server closed the connection without a response");
  }
  return response;
}

/**
 * Splits text into responses by their content-length. Responses must be ASCII. A chunked
 * response must be the last; its body is not decoded.
 */
export function parseResponses(text: string): HttpResponse[] {
  const responses: HttpResponse[] = [];
  let rest = text;
  while (rest !== "") {
    const end = rest.indexOf("\r\n\r\n");
    const [statusLine = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const isChunked = headers["transfer-encoding"] === "chunked";
    const bodyEnd = isChunked ? rest.length : end + 4 + Number(headers["content-length"] ?? 0);
    const status = Number(statusLine.split(" ")[1]);
    responses.push({ status, headers, body: rest.slice(end + 4, bodyEnd) });
    rest = rest.slice(bodyEnd);
  }
  return responses;
}

/** The body of a REST error. */
interface ProblemBody {
  readonly type: string;
  readonly detail: string;
  readonly code: string;
  readonly request_id: string;
  readonly errors?: Readonly<Record<string, readonly string[]>>;
  readonly violations?: readonly Required<FieldViolation>[];
  readonly missing_permissions?: readonly string[];
  readonly current_version?: string;
}

/** Checks that a response is a documented error and returns its body. */
export function expectProblem(response: HttpResponse, status: number, code: string): ProblemBody {
  expect({ status: response.status, body: response.body }).toMatchObject({ status });
  expect(response.headers["content-type"]).toBe("application/problem+json");
  const problem = JSON.parse(response.body);
  // A gateway passes a denial on to its client, on another host.
  const isPassedOn = "x-latchkey-reason" in response.headers;
  expect(problem).toEqual({
    type: isPassedOn ? "about:blank" : `/docs/errors/${code}`,
    title: expect.stringMatching(/./),
    status,
    detail: expect.stringMatching(/./),
    code,
    request_id: response.headers["x-request-id"],
    ...(problem.missing_permissions && { missing_permissions: expect.any(Array) }),
    ...(problem.current_version && { current_version: expect.any(String) }),
    ...(problem.errors && {
      errors: groupByField(problem.violations),
      violations: expect.any(Array),
    }),
  });
  return problem;
}
