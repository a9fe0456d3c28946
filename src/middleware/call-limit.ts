import { overloaded } from "../errors.js";
import type { MaybePromise } from "../lib/async.js";

/** Runs a unary call, or refuses it. */
export type CallLimit = <T>(work: () => MaybePromise<T>) => MaybePromise<T>;

/**
 * Refuses unary calls while `limit` others are in flight, so that a slow store or a flood cannot fill the memory.
 * Calls that never wait do not count. Streams have a limit per caller.
 */
export function createCallLimit(limit: number): CallLimit {
  let inFlight = 0;

  async function count<T>(response: Promise<T>): Promise<T> {
    inFlight++;
    try {
      return await response;
    } finally {
      inFlight--;
    }
  }

  return (work) => {
    if (inFlight >= limit) {
      throw overloaded();
    }
    const response = work();
    return response instanceof Promise ? count(response) : response;
  };
}
