import { randomUUID } from "node:crypto";
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { invalidRequest, Problem } from "../errors.js";
import { problemMediaType } from "../problem-catalogue.js";
import { problemBody } from "./http.js";

export const maxHeaderSize = 16 * 1024;

/**
 * Answers what Node could not read as a request, with a problem body like any
 * other refusal, and ends the connection: nobody knows where the next request
 * would begin.
 */
export function refuseMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return;
  }
  const problem = explain(error);
  const requestId = randomUUID();
  const body = problemBody(problem, requestId);
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n` +
      `content-type: ${problemMediaType}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\n` +
      `x-request-id: ${requestId}\r\n` +
      `connection: close\r\n\r\n${body}`,
  );
}

/** Whether an answer is under way that must not be broken into, as Node itself looks at it. */
function isAnswering(socket: Duplex): boolean {
  const { _httpMessage: answer } = socket as { _httpMessage?: ServerResponse | null };
  return answer?.headersSent === true;
}

function explain({ code }: NodeJS.ErrnoException): Problem {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return new Problem(
        "headers_too_large",
        `The headers may have at most ${maxHeaderSize} bytes. Send less.`,
      );
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return new Problem("request_timeout", "The request took too long to arrive. Send it again.");
    default:
      return invalidRequest({ field: "request", message: "is not HTTP that can be understood" });
  }
}
