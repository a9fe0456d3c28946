import type { Interceptor } from "@connectrpc/connect";

/** Adds the key to every call. */
export function sendKey(key: string): Interceptor {
  return (next) => (request) => {
    request.header.set("SVC-API-KEY", key);
    return next(request);
  };
}
