import { Code, ConnectError } from "@connectrpc/connect";
import { deadlineExceeded, requestCanceled } from "../errors.js";
import type { MaybePromise } from "../lib/async.js";
import type { Cancellation } from "../lib/cancellation.js";
import { createTimerQueue } from "../lib/timeout.js";

/** Runs the work of a call. Fails at the deadline, or when the call is canceled, even if the work continues. */
export type WithDeadline = <T>(
  cancellation: Cancellation,
  work: () => MaybePromise<T>,
) => MaybePromise<T>;

/** Sets a deadline of `timeout` milliseconds. */
export function createDeadline(timeout: number): WithDeadline {
  const timeouts = createTimerQueue(timeout);
  return (cancellation, work) => {
    if (cancellation.reason) {
      throw cancellation.reason;
    }
    const result = work();
    if (!(result instanceof Promise)) {
      return result;
    }
    return new Promise((resolve, reject) => {
      // Canceling also signals the running handler to stop.
      const expiry = timeouts.start(() => cancellation.cancel(deadlineExceeded()));
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
