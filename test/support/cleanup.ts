import { afterEach } from "@jest/globals";

/** Keeps how to stop what a test has begun, and does so when the test is done. */
export function useCleanup(): (stop: () => void) => void {
  let stops: (() => void)[] = [];

  afterEach(() => {
    for (const stop of stops) {
      stop();
    }
    stops = [];
  });

  return (stop) => void stops.push(stop);
}
