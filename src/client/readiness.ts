/** A state that others wait for. */
export interface Readiness {
  /** Resolves once the state is reached. Rejects if the last attempt failed. Keeps the process alive. */
  wait(): Promise<void>;

  /** The state is reached, for good. */
  resolve(): void;

  /** An attempt failed. A later one may succeed. */
  reject(reason: unknown): void;
}

interface Waiter {
  resolve(): void;
  reject(reason: unknown): void;
}

/** In milliseconds. Any interval keeps the process alive. */
const keepAliveInterval = 60_000;

export function createReadiness(): Readiness {
  let waiters: Waiter[] = [];
  let isReached = false;
  let failure: { readonly reason: unknown } | undefined;

  function takeWaiters(): readonly Waiter[] {
    const taken = waiters;
    waiters = [];
    return taken;
  }

  return {
    async wait() {
      if (isReached) {
        return;
      }
      if (failure) {
        throw failure.reason;
      }
      // Without other work, a process that waits would exit without a message.
      const keepAlive = setInterval(() => {}, keepAliveInterval);
      try {
        await new Promise<void>((resolve, reject) => waiters.push({ resolve, reject }));
      } finally {
        clearInterval(keepAlive);
      }
    },

    resolve() {
      isReached = true;
      for (const waiter of takeWaiters()) {
        waiter.resolve();
      }
    },

    reject(reason) {
      failure = { reason };
      for (const waiter of takeWaiters()) {
        waiter.reject(reason);
      }
    },
  };
}
