import { randomUUID } from "node:crypto";
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Limits } from "../../config/limits.js";
import { problemMediaType } from "../../contract/problems.js";
import {
  arrivesTooSlowly,
  headersTooLarge,
  invalidRequest,
  type Problem,
  urlTooLong,
} from "../../errors.js";
import { neverKept, noPage } from "../http/headers.js";
import { problemBody } from "../http/responses.js";

const pageHeaders = [...neverKept, ...noPage];
const pageLines = pageHeaders.map((text, at) => text + (at % 2 ? "\r\n" : ": ")).join("");

type SizeLimits = Pick<Limits, "headerSize" | "urlSize">;

/** What Node tells of bytes that it could not read: the last packet, and how far it came in it. */
type ParseError = NodeJS.ErrnoException & {
  readonly rawPacket?: Buffer;
  readonly bytesParsed?: number;
};

/** Called with each such request that is refused before anyone has seen it. */
export type OnRefused = (requestId: string, status: number) => void;

/**
 * Creates what answers what Node could not read as a request, with a problem body like any
 * other refusal, and ends the connection: nobody knows where the next request
 * would begin.
 */
export function createRefuseMalformed(limits: SizeLimits, onRefused?: OnRefused) {
  return (error: ParseError, socket: Duplex): void => {
    const answer = answerUnderWay(socket);
    if (error.code === "ECONNRESET" || !socket.writable || hasAnswer(socket)) {
      socket.destroy();
      return;
    }
    const problem = explain(error, limits);
    const requestId = randomUUID();
    const body = problemBody(problem, requestId);
    socket.end(
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n` +
        `content-type: ${problemMediaType}\r\n` +
        `content-length: ${Buffer.byteLength(body)}\r\n` +
        `x-request-id: ${requestId}\r\n` +
        pageLines +
        `connection: close\r\n\r\n${body}`,
    );
    if (!answer) {
      onRefused?.(requestId, problem.status);
    }
  };
}

/** A socket, as Node itself looks at it. */
interface Http1Socket {
  /** What is to be answered next. */
  readonly _httpMessage?: ServerResponse | null;
  /** Of the last request, which may still be coming in. */
  readonly parser?: { readonly incoming?: IncomingMessage | null } | null;
}

/** The answer to a request of which the body is on its way, or that is being served. */
function answerUnderWay(socket: Duplex): ServerResponse | null | undefined {
  return (socket as Http1Socket)._httpMessage;
}

/** Whether an answer is under way that must not be broken into, or all of it was sent before the request had come to its end. */
function hasAnswer(socket: Duplex): boolean {
  const { _httpMessage: answer, parser } = socket as Http1Socket;
  return answer ? answer.headersSent : parser?.incoming?.complete === false;
}

function explain(error: ParseError, { headerSize, urlSize }: SizeLimits): Problem {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return hasLongUrl(error, urlSize) ? urlTooLong(urlSize) : headersTooLarge(headerSize);
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return arrivesTooSlowly();
    default:
      return invalidRequest({ field: "request", message: "is not HTTP that can be understood" });
  }
}

const urlCharacters = /^[\w\-.~:/?#[\]@!$&'()*+,;=%]+$/;

/**
 * Whether the URL of a request is too long whose URL and headers together are.
 * Node stops at the end of the URL or of a header. Where the packet is but a part
 * of one of them, it is taken for a URL if it can be one.
 */
function hasLongUrl({ rawPacket, bytesParsed = 0 }: ParseError, urlSize: number): boolean {
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
