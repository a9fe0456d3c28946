import type { Message } from "@bufbuild/protobuf";
import type { ProtocolName } from "../../caller.js";
import type { Problem } from "../../errors.js";
import type { CallRequest } from "../call-request.js";
import type { Exchange } from "../exchange.js";

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
