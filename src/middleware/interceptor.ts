import type {
  Interceptor as ConnectInterceptor,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import type { MaybePromise } from "../lib/maybe-promise.js";

/** What an interceptor has the rest of a call done by. */
export type Next = (
  request: UnaryRequest | StreamRequest,
) => MaybePromise<UnaryResponse | StreamResponse>;

/** An interceptor as Connect has them, only that what waits for nothing is answered at once. */
export type Interceptor = (next: Next) => Next;

/** Makes an interceptor fit for Connect, where every answer is a promise. */
export function forConnect(interceptor: Interceptor): ConnectInterceptor {
  return (next) => {
    const run = interceptor(next);
    return async (request) => await run(request);
  };
}

/** What takes a unary call on, and answers it. */
export type NextUnary = (request: UnaryRequest) => MaybePromise<UnaryResponse>;

/** What takes a stream on, and answers it. */
export type NextStream = (request: StreamRequest) => MaybePromise<StreamResponse>;

/** Puts interceptors, the outermost first, around what answers a call. */
export function chain<N extends NextUnary | NextStream | Next>(
  interceptors: readonly Interceptor[],
  answer: N,
): N {
  return interceptors.reduceRight<N>(
    (next, interceptor) => interceptor(next as Parameters<Interceptor>[0]) as N,
    answer,
  );
}

/** The same request or answer with other messages. It stays what it is: what it makes on demand is no part of a copy. */
export function withMessage<T extends { readonly message: unknown }>(
  original: T,
  message: T["message"],
): T {
  return Object.create(original, { message: { value: message } });
}
