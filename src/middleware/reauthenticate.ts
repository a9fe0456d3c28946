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
 * lost its authority: if the message arrived or was validated in a later turn
 * than the headers, or if the store found the caller changed when it wrote the
 * call's change. Stream handlers do this themselves.
 */
export function createReauthenticateInterceptor(
  readmission: readonly Interceptor[],
  methods: readonly DescMethod[],
): Interceptor {
  const replayable = new Set<DescMethod>(methods.filter(isReplayable));
  const reauthenticate = chain<Next>(readmission, (request) => request as never);
  return (next) => {
    const nextAgain = chain(readmission, next);

    async function tryAgain(request: Request, reason: unknown): Promise<Awaited<ReturnType<Next>>> {
      if (!(reason instanceof CallerChanged) || isCanceled(request.contextValues.get(callKey))) {
        throw reason;
      }
      try {
        return await nextAgain(request);
      } catch (reason) {
        return tryAgain(request, reason);
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
          await reauthenticate(request);
        };
      }
      const result = call.authenticatedIn === currentTick() ? next(request) : nextAgain(request);
      return result instanceof Promise
        ? result.catch((reason) => tryAgain(request, reason))
        : result;
    };
  };
}

function isCanceled({ cancellation }: Call): boolean {
  return cancellation.reason !== undefined;
}
