import type {
  Interceptor,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";

/** What takes a unary call on, and answers it. */
export type Next = (request: UnaryRequest) => Promise<UnaryResponse>;

/** What takes a stream on, and answers it. */
export type NextStream = (request: StreamRequest) => Promise<StreamResponse>;

/** Puts interceptors, the outermost first, around what answers a call. */
export function chain<N extends Next | NextStream>(
  interceptors: readonly Interceptor[],
  answer: N,
): N {
  return interceptors.reduceRight<N>(
    (next, interceptor) => interceptor(next as Parameters<Interceptor>[0]) as N,
    answer,
  );
}
