import type { Message } from "@bufbuild/protobuf";
import type { ProtocolName } from "../../../auth/caller.js";
import { bodyTooLarge, invalidRequest, Problem } from "../../../errors.js";
import type { Exchange } from "../../http/exchange.js";
import type { CallRequest } from "../call.js";

/** How messages of a method are read and written. */
export interface Codec {
  /** Reads a message, or throws what is wrong with it. */
  decode(bytes: Buffer): Message;
  /** Writes a message: in JSON as it is, in binary in its envelope. */
  encode(message: object): Buffer;
}

/** What a protocol makes of a unary call: which bytes are its message, and how it is answered. */
export interface Protocol<E extends Exchange = Exchange> {
  readonly name: ProtocolName;
  /** How many bytes a body has beside its message. */
  readonly overhead: number;
  /** The format of its messages. */
  readonly format: "binary" | "json";

  /** The message in a body, which may be so long, or throws what is wrong with the body. */
  unwrap(body: Buffer, limit: number): Buffer;

  answer(exchange: E, call: CallRequest, codec: Codec, message: Message): void;

  refuse(exchange: E, call: CallRequest, problem: Problem): void;
}

/** How long the prefix of a message is in gRPC and gRPC-Web: a byte of flags, and the length. */
export const envelopeSize = 5;

/** Takes the one message, which may be so long, out of a body. */
export function openEnvelope(body: Buffer, limit: number): Buffer {
  if (body.length === 0) {
    throw noMessage();
  }
  const end = endOfFirst(body);
  const problem = problemWith(body[0] as number, end - envelopeSize, limit);
  if (problem) {
    throw problem;
  }
  if (body.length > end) {
    endOfFirst(body.subarray(end));
    throw manyMessages();
  }
  if (body.length < end) {
    throw endsTooEarly();
  }
  return body.subarray(envelopeSize);
}

/** What is wrong with the prefix of a message that may be so long. */
export function problemWith(flags: number, length: number, limit: number): Problem | undefined {
  if (length > limit) {
    return bodyTooLarge(limit);
  }
  return flags === 0
    ? undefined
    : malformed("its flags say that it is compressed, or make no sense");
}

export function noMessage(): Problem {
  return new Problem("unimplemented", "The call has no message. Send one.");
}

export function manyMessages(): Problem {
  return new Problem("unimplemented", "The call has more than one message. Send one.");
}

export function endsTooEarly(): Problem {
  return malformed("it ends too early");
}

/** Closes an envelope: writes the prefix of a message into the bytes that were left free for it. */
export function closeEnvelope(bytes: Buffer): Buffer {
  bytes[0] = 0;
  bytes.writeUInt32BE(bytes.length - envelopeSize, 1);
  return bytes;
}

function endOfFirst(body: Buffer): number {
  if (body.length < envelopeSize) {
    throw endsTooEarly();
  }
  return envelopeSize + body.readUInt32BE(1);
}

function malformed(why: string): Problem {
  return invalidRequest({ field: "request", message: `cannot be read: ${why}` });
}
