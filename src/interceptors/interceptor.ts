import type {
  Interceptor as ConnectInterceptor,
  StreamRequest,
  StreamResponse,
  UnaryRequest,
  UnaryResponse,
} from "@connectrpc/connect";
import type { Awaitable } from "../awaitable.js";

/** What an interceptor has the rest of a call done by. */
export type Next = (
  request: UnaryRequest | StreamRequest,
) => Awaitable<UnaryResponse | StreamResponse>;

/** An interceptor as Connect has them, only that what waits for nothing is answered at once. */
export type Interceptor = (next: Next) => Next;

/** Makes an interceptor fit for Connect, where every answer is a promise. */
export function forConnect(interceptor: Interceptor): ConnectInterceptor {
  return (next) => {
    const run = interceptor(next);
    return async (request) => await run(request);
  };
}
