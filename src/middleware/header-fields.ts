import { createHeaderReader, type ReadHeaders } from "../contract/headers.js";
import { memoize } from "../lib/cache.js";
import type { Interceptor } from "./interceptor.js";

const readerOf = memoize<Parameters<typeof createHeaderReader>[0], ReadHeaders>(createHeaderReader);

/** Sets the fields of a message that headers carry, `If-Match` for one, whatever the protocol. */
export const readHeaderFields: Interceptor = (next) => (request) => {
  if (!request.stream) {
    readerOf(request.method.input)(request.message, request.header);
  }
  return next(request);
};
