/** An auto-reset event for one waiter: a notification without a waiter ends the next wait. */
export interface Signal {
  notify(): void;
  /** Resolves on the next notification, or after a timeout in milliseconds. */
  wait(timeout?: number): Promise<void>;
}

export function createSignal(): Signal {
  let isNotified = false;
  let wake = () => {};

  return {
    notify() {
      isNotified = true;
      wake();
    },

    async wait(timeout) {
      if (!isNotified) {
        await new Promise<void>((resolve) => {
          const timer = timeout === undefined ? undefined : setTimeout(resolve, timeout);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isNotified = false;
      wake = () => {};
    },
  };
}
