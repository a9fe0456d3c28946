import { Code, ConnectError } from "@connectrpc/connect";
import { callKey } from "../auth/caller.js";
import { deadlineExceeded, requestCanceled } from "../errors.js";
import { createTimerQueue } from "../lib/timeout.js";
import type { Interceptor } from "./interceptor.js";

const tooLate =
  "The request exceeded its deadline. A change may or may not have been applied: " +
  "retry with the same Idempotency-Key, or read before you retry.";

/**
 * Fails a unary call after `timeout` milliseconds, or when it is canceled, even
 * if its handler is still running.
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
    const result = next(request);
    if (!(result instanceof Promise)) {
      return result;
    }
    return new Promise((resolve, reject) => {
      // Canceling also signals the running handler to stop.
      const expiry = timeouts.start(() => cancellation.cancel(deadlineExceeded(tooLate)));
      const settle = () => {
        expiry.cancel();
        cancellation.offCancel(fail);
      };
      const fail = (reason: unknown) => {
        settle();
        reject(reason);
      };
      cancellation.onCancel(fail);
      result.then((response) => {
        settle();
        resolve(response);
      }, fail);
    });
  };
}

/** The error for an aborted call: its deadline passed, or the client disconnected. */
export function cancellationError({ reason }: AbortSignal): ConnectError {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded
    ? reason
    : requestCanceled();
}
