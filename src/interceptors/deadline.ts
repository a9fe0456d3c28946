import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { Problem } from "../errors.js";

/**
 * Answers a unary call when its time is up, whatever is still going on: after
 * `timeout` milliseconds, or when the caller's own deadline passes.
 */
export function createDeadlineInterceptor(timeout: number): Interceptor {
  return (next) => (request) => {
    if (request.stream) {
      return next(request);
    }
    const { signal } = request;
    if (signal.aborted) {
      return Promise.reject(reasonOf(signal));
    }
    return new Promise((resolve, reject) => {
      const expire = () =>
        reject(new Problem("deadline_exceeded", "The request took too long. Try again."));
      const abort = () => reject(reasonOf(signal));
      const timer = setTimeout(expire, timeout);
      signal.addEventListener("abort", abort, { once: true });
      next(request)
        .then(resolve, reject)
        .finally(() => {
          clearTimeout(timer);
          signal.removeEventListener("abort", abort);
        });
    });
  };
}

/** Why a call was given up: its deadline passed, or else its caller went away. */
export function reasonOf({ reason }: AbortSignal): ConnectError {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded
    ? reason
    : new Problem("canceled", "The caller went away before the answer.");
}
