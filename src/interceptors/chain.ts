import type {
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import type { Awaitable } from "../awaitable.js";
import type { Interceptor, Next } from "./interceptor.js";

/** What takes a unary call on, and answers it. */
export type NextUnary = (request: UnaryRequest) => Awaitable<UnaryResponse>;

/** What takes a stream on, and answers it. */
export type NextStream = (request: StreamRequest) => Awaitable<StreamResponse>;

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
