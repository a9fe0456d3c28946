import type { DescMethod } from "@bufbuild/protobuf";
import { type Call, callKey } from "../auth/caller.js";
import { isReplayable } from "../contract/methods.js";
import { currentTick } from "../lib/event-loop.js";
import { CallerChanged } from "../store/port/errors.js";
import type { Interceptor, Next } from "./interceptor.js";
import { chain } from "./interceptor.js";

type Request = Parameters<Next>[0];

/**
 * Authenticates and authorizes the caller of a unary call again if it may have
 * lost its permissions: if the message arrived or was validated in a later tick
 * than the headers, or if the store found that the caller changed during the
 * write. Stream handlers do this themselves.
 */
export function createReauthorizeInterceptor(
  reauthorization: readonly Interceptor[],
  methods: readonly DescMethod[],
): Interceptor {
  const replayable = new Set<DescMethod>(methods.filter(isReplayable));
  const reauthorize = chain<Next>(reauthorization, (request) => request as never);
  return (next) => {
    const reauthorizeThenNext = chain(reauthorization, next);

    async function retry(request: Request, reason: unknown): Promise<Awaited<ReturnType<Next>>> {
      if (!(reason instanceof CallerChanged) || isCanceled(request.contextValues.get(callKey))) {
        throw reason;
      }
      try {
        return await reauthorizeThenNext(request);
      } catch (reason) {
        return retry(request, reason);
      }
    }

    return (request) => {
      // A GET request arrives with its headers and changes nothing.
      if (request.stream || request.requestMethod === "GET") {
        return next(request);
      }
      const call = request.contextValues.get(callKey);
      if (replayable.has(request.method)) {
        call.reauthorize = async () => {
          await reauthorize(request);
        };
      }
      const result =
        call.authenticatedAtTick === currentTick() ? next(request) : reauthorizeThenNext(request);
      return result instanceof Promise ? result.catch((reason) => retry(request, reason)) : result;
    };
  };
}

function isCanceled({ cancellation }: Call): boolean {
  return cancellation.reason !== undefined;
}
