import { Code, ConnectError } from "@connectrpc/connect";
import { callKey } from "../auth/caller.js";
import { callerLeft, outOfTime } from "../errors.js";
import { createTimerQueue } from "../lib/timeout.js";
import type { Interceptor } from "./interceptor.js";

/**
 * Answers a unary call when its time is up, whatever is still going on: after
 * `timeout` milliseconds, or when it is given up for its caller.
 */
export function createDeadlineInterceptor(timeout: number): Interceptor {
  const timeouts = createTimerQueue(timeout);
  return (next) => (request) => {
    if (request.stream) {
      return next(request);
    }
    const { cancellation } = request.contextValues.get(callKey);
    if (cancellation.reason) {
      throw cancellation.reason;
    }
    const answer = next(request);
    if (!(answer instanceof Promise)) {
      return answer;
    }
    return new Promise((resolve, reject) => {
      // Whoever still works for the call can see that it is over.
      const expiry = timeouts.start(() =>
        cancellation.cancel(outOfTime("The request took too long. Try again.")),
      );
      const settle = () => {
        expiry.cancel();
        cancellation.offCancel(fail);
      };
      const fail = (reason: unknown) => {
        settle();
        reject(reason);
      };
      cancellation.onCancel(fail);
      answer.then((response) => {
        settle();
        resolve(response);
      }, fail);
    });
  };
}

/** Why a call was given up: its deadline passed, or else its caller went away. */
export function reasonOf({ reason }: AbortSignal): ConnectError {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded
    ? reason
    : callerLeft();
}
