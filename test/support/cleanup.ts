import { afterEach } from "@jest/globals";

/** Returns a function that registers a callback to run after the current test. */
export function useCleanup(): (cleanUp: () => void) => void {
  let callbacks: (() => void)[] = [];

  afterEach(() => {
    for (const cleanUp of callbacks) {
      cleanUp();
    }
    callbacks = [];
  });

  return (cleanUp) => void callbacks.push(cleanUp);
}
