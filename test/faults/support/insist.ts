import { setTimeout as delay } from "node:timers/promises";
import { ApiFailure } from "../../support/api/api.js";
import { hangTimeout } from "../../support/until.js";
import { unavailable } from "./tally.js";

/** Retries while the store is unavailable, as clients do: on a busy machine that happens without a fault. */
export async function insist<T>(call: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + hangTimeout;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const isAway = error instanceof ApiFailure && unavailable.includes(error.reason);
      if (!isAway || performance.now() > deadline) {
        throw error;
      }
    }
    await delay(100);
  }
}
