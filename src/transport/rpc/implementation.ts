import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import type { HandlerContext, MethodImpl, ServiceImpl } from "@connectrpc/connect";
import type { WithoutSecrets } from "../../auth/keys.js";
import { Problem } from "../../errors.js";
import type { Interceptors } from "../../middleware/pipeline.js";

/** A service with the handlers of its methods. */
export interface Implementation {
  readonly service: DescService;
  readonly handlers: ServiceImpl<DescService>;
}

/** Pairs a service with its handlers. */
export function implement<S extends DescService>(
  service: S,
  handlers: ServiceImpl<S>,
): Implementation {
  return { service, handlers: handlers as ServiceImpl<DescService> };
}

/** A handler of a method with a stream, in either direction. */
export type StreamHandler = (
  input: AsyncIterable<Message> | Message,
  context: HandlerContext,
) => AsyncIterable<object> | Promise<object>;

export type UnaryHandler = MethodImpl<DescMethodUnary>;

/** The handler of a method with a stream. */
export function streamHandler(implementation: Implementation, method: DescMethod): StreamHandler {
  return handlerOf(implementation, method) as unknown as StreamHandler;
}

/** The handler of a unary method. */
export function unaryHandler(
  implementation: Implementation,
  method: DescMethodUnary,
): UnaryHandler {
  return handlerOf(implementation, method) as unknown as UnaryHandler;
}

/** A method without a handler is one that is not offered. */
function handlerOf({ handlers }: Implementation, { localName, name }: DescMethod) {
  return (
    handlers[localName] ??
    (() => {
      throw new Problem("unimplemented", `${name} is not offered here.`);
    })
  );
}

export interface RpcOptions {
  readonly implementations: readonly Implementation[];
  /** Services about the server itself, which need no key. */
  readonly openImplementations: readonly Implementation[];
  readonly interceptors: Interceptors;
  readonly bodyLimit: number;
  /** How deep JSON may be nested. */
  readonly jsonDepth: number;
  /** Milliseconds that the caller of a stream may take to read a part of it. */
  readonly patience: number;
  readonly withoutSecrets: WithoutSecrets;
}

/** How many bytes may be sent to those that need no key: a name is all that they are asked for. */
export const openBodyLimit = 4 * 1024;
