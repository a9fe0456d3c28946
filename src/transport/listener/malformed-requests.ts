import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Limits } from "../../config/limits.js";
import { problemMediaType } from "../../contract/problems.js";
import {
  headersTooLarge,
  invalidRequest,
  type Problem,
  problemBody,
  requestTimeout,
  urlTooLong,
} from "../../errors.js";
import { noStore, securityHeaders } from "../http/headers.js";
import { http1ConnectionOf } from "../http/http1-connection.js";

const headerLines = [...noStore, ...securityHeaders]
  .map((text, index) => text + (index % 2 ? "\r\n" : ": "))
  .join("");

type SizeLimits = Pick<Limits, "headerSize" | "urlSize">;

/** Node's parse error: the last packet, and how many bytes of it were parsed. */
type ParseError = NodeJS.ErrnoException & {
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
};

/** Called for each malformed request. */
export type OnMalformedRequest = (requestId: string, status: number) => void;

/**
 * Creates the handler of input that Node cannot parse as a request. It responds
 * with a problem body and closes the connection, as the start of the next request
 * is unknown.
 */
export function createMalformedRequestHandler(
  limits: SizeLimits,
  onMalformedRequest?: OnMalformedRequest,
) {
  function respond(error: ParseError, socket: Duplex, isBusy: boolean): void {
    if (!socket.writable) {
      return;
    }
    const problem = toProblem(error, limits);
    const requestId = randomUUID();
    const body = problemBody(problem, requestId);
    socket.end(
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n` +
        `content-type: ${problemMediaType}\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n` +
        `x-request-id: ${requestId}\r\n` +
        headerLines +
        `connection: close\r\n\r\n${body}`,
    );
    // A request that is being handled has its own log line.
    if (!isBusy) {
      onMalformedRequest?.(requestId, problem.status);
    }
  }

  return (error: ParseError, socket: Duplex): void => {
    if (!isOfRequest(error) || !socket.writable) {
      socket.destroy();
      return;
    }
    const connection = http1ConnectionOf(socket);
    connection.respondToMalformed(
      () => respond(error, socket, connection.isBusy),
      () => socket.destroy(),
    );
  };
}

/** Whether the input of a client caused the error. Others, such as a failed TLS handshake, get no response. */
function isOfRequest({ code = "" }: ParseError): boolean {
  return code.startsWith("HPE_") || code === "ERR_HTTP_REQUEST_TIMEOUT";
}

function toProblem(error: ParseError, { headerSize, urlSize }: SizeLimits): Problem {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return isUrlTooLong(error, urlSize) ? urlTooLong(urlSize) : headersTooLarge(headerSize);
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return requestTimeout();
    default:
      return invalidRequest({ field: "request", message: "is not valid HTTP" });
  }
}

const urlCharacters = /^[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/;

/**
 * Whether the URL is too long, if URL and headers together are. Node stops at the
 * end of the URL or of a header. If the packet is only a part of one of them, it
 * counts as a URL if it can be one.
 */
function isUrlTooLong({ rawPacket, bytesParsed = 0 }: ParseError, urlSize: number): boolean {
  const text = rawPacket?.toString("latin1") ?? "";
  if (text.startsWith(" HTTP/", bytesParsed)) {
    return true;
  }
  const read = text.slice(0, bytesParsed);
  const line = read.slice(read.lastIndexOf("\n") + 1);
  if (line.length === read.length && urlCharacters.test(line)) {
    return true;
  }
  const space = line.lastIndexOf(" ");
  if (/[A-Z]$/.test(line.slice(0, space)) && line.startsWith("/", space + 1)) {
    return true;
  }
  const version = read.lastIndexOf(" HTTP/1.");
  return version >= 0 && version - read.lastIndexOf(" ", version - 1) - 1 > urlSize;
}
