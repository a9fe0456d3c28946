import type { StreamRequest, StreamResponse } from "@connectrpc/connect";
import { type Caller, callKey } from "../auth/caller.js";
import type { ReadAddressOf } from "../auth/caller-address.js";
import { tooManyStreams } from "../errors.js";
import { onIteratorEnd } from "../lib/async.js";
import { clientNetworkKey } from "../lib/networks.js";
import type { Interceptor } from "./interceptor.js";
import { withMessage } from "./interceptor.js";

/** The limit for unauthenticated callers, if it is lower than the configured one. */
const unauthenticatedLimit = 64;

/**
 * Limits the open streams per caller: per application or session, or per client
 * network if no key is needed.
 */
export function createStreamLimitInterceptor(
  limit: number,
  readAddressOf: ReadAddressOf,
): Interceptor {
  const open = new Map<string, number>();

  function acquire(key: string, max: number): void {
    const count = open.get(key) ?? 0;
    if (count >= max) {
      throw tooManyStreams(max);
    }
    open.set(key, count + 1);
  }

  function release(key: string): void {
    const count = open.get(key) ?? 0;
    if (count > 1) {
      open.set(key, count - 1);
    } else {
      open.delete(key);
    }
  }

  function keyOf({ contextValues: values }: StreamRequest, caller: Caller | undefined): string {
    if (caller) {
      return (caller.session ?? caller.application).id;
    }
    const address = readAddressOf({ values });
    return address ? clientNetworkKey(address) : "";
  }

  return (next) => {
    const openStream = async (request: StreamRequest) => {
      const { caller } = request.contextValues.get(callKey);
      const key = keyOf(request, caller);
      acquire(key, caller ? limit : Math.min(limit, unauthenticatedLimit));
      try {
        const response = (await next(request)) as StreamResponse;
        return withMessage(
          response,
          onIteratorEnd(response.message, (end) => {
            release(key);
            if (end.how === "failed") {
              throw end.reason;
            }
          }),
        );
      } catch (reason) {
        release(key);
        throw reason;
      }
    };
    return (request) => (request.stream ? openStream(request) : next(request));
  };
}
