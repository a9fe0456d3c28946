import { overloaded } from "../errors.js";
import type { MaybePromise } from "../lib/async.js";

/**
 * Limits the unary calls in flight, so that a slow store or a flood cannot fill the memory. Calls that never wait do
 * not count. Streams have a limit per caller.
 */
export interface CallLimit {
  /** Refuses a call if the limit is reached. */
  assertCapacity(): void;

  /** Counts a call while it waits for its result. */
  count<T>(result: MaybePromise<T>): MaybePromise<T>;
}

export function createCallLimit(limit: number): CallLimit {
  let inFlight = 0;

  async function countUntilSettled<T>(result: Promise<T>): Promise<T> {
    inFlight++;
    try {
      return await result;
    } finally {
      inFlight--;
    }
  }

  return {
    assertCapacity() {
      if (inFlight >= limit) {
        throw overloaded();
      }
    },

    count: (result) => (result instanceof Promise ? countUntilSettled(result) : result),
  };
}
