/** Lets one wait for what others do. Rung while nobody waits, it ends the next wait. */
export interface Signal {
  notify(): void;
  /** Resolves when it rings, or after a number of milliseconds. */
  wait(longest?: number): Promise<void>;
}

export function createSignal(): Signal {
  let isRung = false;
  let wake = () => {};

  return {
    notify() {
      isRung = true;
      wake();
    },

    async wait(longest) {
      if (!isRung) {
        await new Promise<void>((resolve) => {
          const timer = longest === undefined ? undefined : setTimeout(resolve, longest);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      isRung = false;
      wake = () => {};
    },
  };
}
