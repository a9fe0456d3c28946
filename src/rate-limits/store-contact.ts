import type { Logger } from "pino";

/** Tells whether the store counts, and of each change of that in the log. */
export interface StoreContact {
  /** Whether this process has to count by itself for now. */
  isLost(): boolean;
  lose(err: unknown): void;
  regain(): void;
}

/** How long this process counts by itself before it asks the store again, in milliseconds. */
const lossInterval = 1_000;

export function createStoreContact(log: Logger): StoreContact {
  let askAgainAt = 0;
  let isLost = false;
  return {
    isLost: () => performance.now() < askAgainAt,

    lose(err) {
      askAgainAt = performance.now() + lossInterval;
      if (!isLost) {
        isLost = true;
        log.warn({ err }, "rate limits cannot be counted together: this process counts by itself");
      }
    },

    regain() {
      if (isLost) {
        isLost = false;
        log.info("rate limits are counted together again");
      }
    },
  };
}
