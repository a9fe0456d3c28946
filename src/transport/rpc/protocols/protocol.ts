import type { IncomingHttpHeaders } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { parseTimeout as parseConnectTimeout } from "@connectrpc/connect/protocol-connect";
import { parseTimeout as parseGrpcTimeout } from "@connectrpc/connect/protocol-grpc";
import { type BadRequest, BadRequestSchema } from "../../../../gen/google/rpc/error_details_pb.js";
import type { ProtocolName } from "../../../call.js";
import {
  bodyTooLarge,
  deadlineExceeded,
  invalidRequest,
  overloaded,
  Problem,
  toProblem,
} from "../../../errors.js";
import type { Exchange } from "../../http/exchange.js";
import { Http2Exchange } from "../../http/http2-exchange.js";
import type { ServerCall } from "../call.js";

/** Decodes and encodes the messages of a method. */
export interface Codec {
  decode(bytes: Buffer): Message;
  /** Encodes a message. Binary messages include their envelope. */
  encode(message: object): Buffer;
}

/** How a protocol frames the message and the response of a unary call. */
export interface Protocol<E extends Exchange = Exchange> {
  readonly name: ProtocolName;
  /** Bytes of a body in addition to its message. */
  readonly overhead: number;
  readonly format: "binary" | "json";

  /** Extracts the message, of at most `limit` bytes. Throws if the body is malformed. */
  unwrap(body: Buffer, limit: number): Buffer;

  respond(exchange: E, call: ServerCall, codec: Codec, message: Message): void;

  respondWithError(exchange: E, call: ServerCall, problem: Problem): void;
}

/** The size of a message prefix in gRPC and gRPC-Web: one byte of flags and the length. */
export const envelopeSize = 5;

/** Extracts the only message, of at most `limit` bytes, from a body. */
export function openEnvelope(body: Buffer, limit: number): Buffer {
  if (body.length === 0) {
    throw missingMessage();
  }
  const end = endOfFirst(body);
  const problem = checkPrefix(body[0] as number, end - envelopeSize, limit);
  if (problem) {
    throw problem;
  }
  if (body.length > end) {
    endOfFirst(body.subarray(end));
    throw tooManyMessages();
  }
  if (body.length < end) {
    throw truncatedMessage();
  }
  return body.subarray(envelopeSize);
}

/** Checks the prefix of a message. Returns the problem, if any. */
export function checkPrefix(flags: number, length: number, limit: number): Problem | undefined {
  if (length > limit) {
    return bodyTooLarge(limit);
  }
  return flags === 0 ? undefined : malformed("the message is compressed, or its flags are invalid");
}

export function missingMessage(): Problem {
  return new Problem("unimplemented", "The call has no message. Send exactly one.");
}

export function tooManyMessages(): Problem {
  return new Problem("unimplemented", "The call has more than one message. Send exactly one.");
}

export function truncatedMessage(): Problem {
  return malformed("the message is incomplete");
}

/** Copies a message behind its prefix. */
export function envelop(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(envelopeSize + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, envelopeSize);
  return bytes;
}

function endOfFirst(body: Buffer): number {
  if (body.length < envelopeSize) {
    throw truncatedMessage();
  }
  return envelopeSize + body.readUInt32BE(1);
}

function malformed(why: string): Problem {
  return unreadable(`: ${why}`);
}

function unreadable(reason: string): Problem {
  return invalidRequest({
    field: "request",
    message: `cannot be read${reason}`,
    code: "malformed",
  });
}

/**
 * Converts an error of the protocol library while it reads a message. The
 * library reports some client errors as internal errors.
 */
export function toDecodeProblem(reason: unknown, bodyLimit: number): Problem {
  if (reason instanceof Problem) {
    return reason;
  }
  const [invalid] = reason instanceof ConnectError ? reason.findDetails(BadRequestSchema) : [];
  if (invalid) {
    return invalidMessage((reason as ConnectError).rawMessage, invalid);
  }
  const code = reason instanceof ConnectError ? reason.code : undefined;
  switch (code) {
    case Code.ResourceExhausted:
      return bodyTooLarge(bodyLimit);
    case Code.Unavailable:
      return overloaded();
    case Code.Unimplemented:
    case Code.Canceled:
      return toProblem(reason);
    default:
      return unreadable(reasonOf(reason));
  }
}

/** The problem of a message that could be read in part. */
function invalidMessage(detail: string, { fieldViolations }: BadRequest): Problem {
  const violations = fieldViolations.map(({ field, description: message, reason: code }) => ({
    field,
    message,
    code,
  }));
  return new Problem("invalid_request", detail, { violations });
}

/** The message of the library, unless it is generic. */
function reasonOf(reason: unknown): string {
  return reason instanceof ConnectError && !/^internal error$|^$/.test(reason.rawMessage)
    ? `: ${reason.rawMessage}`
    : "";
}

const grpcTypes: ReadonlySet<string> = new Set(["application/grpc", "application/grpc+proto"]);
const encodings = ["content-encoding", "grpc-encoding", "connect-content-encoding"];

/** Whether the fast path supports a request: uncompressed, with a valid timeout. */
export function isFastPath({ method, headers }: Exchange): boolean {
  return method === "POST" && !isEncoded(headers) && !Number.isNaN(parseTimeout(headers));
}

function isEncoded(headers: IncomingHttpHeaders): boolean {
  for (const name of encodings) {
    const encoding = headers[name];
    if (encoding !== undefined && encoding !== "identity") {
      return true;
    }
  }
  return false;
}

/** Whether a request is gRPC with binary messages. */
export function isGrpc(exchange: Exchange): exchange is Http2Exchange {
  return exchange instanceof Http2Exchange && grpcTypes.has(exchange.headers["content-type"] ?? "");
}

/** The longest delay of a timer. No call takes that long. */
const maxTimerMs = 2 ** 31 - 1;

/** The timeout headers of the protocols. */
const parsers = [
  ["grpc-timeout", parseGrpcTimeout],
  ["connect-timeout-ms", parseConnectTimeout],
] as const;

/** The caller's timeout in milliseconds, if any. `NaN` if it is invalid. */
export function parseTimeout(headers: IncomingHttpHeaders): number | undefined {
  for (const [name, parse] of parsers) {
    const value = headers[name];
    if (value !== undefined) {
      const { timeoutMs = Number.NaN } = parse(String(value), Number.MAX_SAFE_INTEGER);
      return timeoutMs > maxTimerMs ? undefined : timeoutMs;
    }
  }
  return undefined;
}

/** Cancels a call after the caller's timeout. An invalid timeout is ignored. */
export function startTimeout({ headers, cancellation }: Exchange): void {
  const timeout = parseTimeout(headers);
  if (timeout !== undefined && !Number.isNaN(timeout)) {
    cancellation.cancelAfter(timeout, timedOut);
  }
}

const timedOut = () => deadlineExceeded("The timeout that the caller set has expired.");
