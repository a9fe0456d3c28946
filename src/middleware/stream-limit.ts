import type { StreamRequest, StreamResponse } from "@connectrpc/connect";
import { type Caller, callKey } from "../auth/caller.js";
import type { ReadAddressOf } from "../auth/caller-address.js";
import { tooManyStreams } from "../errors.js";
import { onIteratorEnd } from "../lib/iterators.js";
import { homeOf } from "../lib/networks.js";
import type { Interceptor } from "./interceptor.js";
import { withMessage } from "./interceptor.js";

/** How many streams those may have at once who have shown no key, whatever others may. */
const strangerLimit = 64;

/**
 * Lets a caller have so many streams at once. A caller is an application or a
 * session, or, where no key is needed, the home of an address.
 */
export function createLimitStreamsInterceptor(
  limit: number,
  readAddressOf: ReadAddressOf,
): Interceptor {
  const open = new Map<string, number>();

  function take(name: string, most: number): void {
    const count = open.get(name) ?? 0;
    if (count >= most) {
      throw tooManyStreams(most);
    }
    open.set(name, count + 1);
  }

  function giveBack(name: string): void {
    const count = open.get(name) ?? 0;
    if (count > 1) {
      open.set(name, count - 1);
    } else {
      open.delete(name);
    }
  }

  function nameOf({ contextValues: values }: StreamRequest, caller: Caller | undefined): string {
    if (caller) {
      return (caller.session ?? caller.application).id;
    }
    const address = readAddressOf({ values });
    return address ? homeOf(address) : "";
  }

  return (next) => {
    const openStream = async (request: StreamRequest) => {
      const { caller } = request.contextValues.get(callKey);
      const name = nameOf(request, caller);
      take(name, caller ? limit : Math.min(limit, strangerLimit));
      try {
        const response = (await next(request)) as StreamResponse;
        return withMessage(
          response,
          onIteratorEnd(response.message, (end) => {
            giveBack(name);
            if (end.how === "failed") {
              throw end.reason;
            }
          }),
        );
      } catch (reason) {
        giveBack(name);
        throw reason;
      }
    };
    return (request) => (request.stream ? openStream(request) : next(request));
  };
}
