import type {
  Interceptor as ConnectInterceptor,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import type { MaybePromise } from "../lib/async.js";

/** The rest of the chain. */
export type Next = (
  request: UnaryRequest | StreamRequest,
) => MaybePromise<UnaryResponse | StreamResponse>;

/** Like Connect's interceptor, but the response may be synchronous. */
export type Interceptor = (next: Next) => Next;

/** Adapts an interceptor to Connect, where every response is a promise. */
export function forConnect(interceptor: Interceptor): ConnectInterceptor {
  return (next) => {
    const run = interceptor(next);
    return async (request) => await run(request);
  };
}

/** The rest of the chain of a unary call. */
export type NextUnary = (request: UnaryRequest) => MaybePromise<UnaryResponse>;

/** The rest of the chain of a stream. */
export type NextStream = (request: StreamRequest) => MaybePromise<StreamResponse>;

/** Wraps a handler in interceptors, the outermost first. */
export function chain<N extends NextUnary | NextStream | Next>(
  interceptors: readonly Interceptor[],
  handler: N,
): N {
  return interceptors.reduceRight<N>(
    (next, interceptor) => interceptor(next as Parameters<Interceptor>[0]) as N,
    handler,
  );
}

/** The same request or response with another message. Not a copy, which would evaluate lazy properties. */
export function withMessage<T extends { readonly message: unknown }>(
  original: T,
  message: T["message"],
): T {
  return Object.create(original, { message: { value: message } });
}
