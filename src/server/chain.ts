import type { Interceptor, UnaryRequest, UnaryResponse } from "@connectrpc/connect";

/** What takes a unary call on, and answers it. */
export type Next = (request: UnaryRequest) => Promise<UnaryResponse>;

/** Puts interceptors, the outermost first, around what answers a unary call. */
export function chain(interceptors: readonly Interceptor[], answer: Next): Next {
  return interceptors.reduceRight<Next>(
    (next, interceptor) => interceptor(next as Parameters<Interceptor>[0]) as Next,
    answer,
  );
}
