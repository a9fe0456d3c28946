import type { DescMethodUnary, DescService } from "@bufbuild/protobuf";
import type { MethodImpl, ServiceImpl } from "@connectrpc/connect";

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

export type UnaryHandler = MethodImpl<DescMethodUnary>;

/** The handler of a unary method. */
export function unaryHandler({ handlers }: Implementation, method: DescMethodUnary): UnaryHandler {
  return handlers[method.localName] as unknown as UnaryHandler;
}
