import type {
  DescMessage,
  DescMethod,
  DescMethodUnary,
  DescService,
  Message,
} from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import type { RedactKeys } from "../../auth/keys.js";
import { Problem } from "../../errors.js";
import type { Pipeline, Pipelines } from "../../middleware/pipeline.js";
import type { UnaryHandler } from "./call.js";
import type { Codec } from "./protocols/protocol.js";

/** A service with the handlers of its methods. */
export interface Implementation {
  readonly service: DescService;
  readonly handlers: ServiceImpl<DescService>;
}

export function implement<S extends DescService>(
  service: S,
  handlers: ServiceImpl<S>,
): Implementation {
  return { service, handlers: handlers as ServiceImpl<DescService> };
}

/** The handler of a streaming method, in either direction. */
type StreamHandler = (
  input: AsyncIterable<Message> | Message,
  context: HandlerContext,
) => AsyncIterable<object> | Promise<object>;

export function streamHandler(implementation: Implementation, method: DescMethod): StreamHandler {
  return handlerOf(implementation, method) as unknown as StreamHandler;
}

export function unaryHandler(
  implementation: Implementation,
  method: DescMethodUnary,
): UnaryHandler {
  return handlerOf(implementation, method) as unknown as UnaryHandler;
}

/** Returns the handler of a method, or one that fails with `unimplemented`. */
export function handlerOf({ handlers }: Implementation, { localName, name }: DescMethod) {
  return (
    handlers[localName] ??
    (() => {
      throw new Problem("unimplemented", `${name} is not implemented.`);
    })
  );
}

export interface RpcOptions {
  readonly implementations: readonly Implementation[];
  /** Services that need no key. */
  readonly unauthenticatedImplementations: readonly Implementation[];
  readonly pipelines: Pipelines;
  readonly bodyLimit: number;
  /** The maximum nesting depth of JSON. */
  readonly jsonDepth: number;
  /** Milliseconds that a client may take to read a part of a stream. */
  readonly writeTimeoutMs: number;
  readonly redactKeys: RedactKeys;
}

/** The message limit of a method without a key, in bytes. Most requests contain little more than a name or a key. */
export function unauthenticatedBodyLimit({ input }: DescMethod): number {
  return (isRawBody(input) ? 256 : 4) * 1024;
}

/** Whether a message is the body of a REST request or response as it is. */
export function isRawBody(schema: DescMessage): boolean {
  return schema.typeName === HttpBodySchema.typeName;
}

export type Codecs = Readonly<Record<"binary" | "json", Codec>>;

/** A method at its RPC path. */
export interface MountedMethod {
  readonly path: string;
  readonly method: DescMethod;
  readonly implementation: Implementation;
  readonly codecs: Codecs;
  readonly pipeline: Pipeline;
  /** The message limit in bytes. */
  readonly bodyLimit: number;
}
