import { isPossible } from "./stream-renewal.js";

/** Creates what keeps the moment up to which no change is missing. */
export function createCompleteness() {
  const ready = createPromise();
  let until = Number.NEGATIVE_INFINITY;
  return {
    until: () => until,
    /** Settles when there is such a moment for the first time, or by hand. */
    ready,

    advance(reached: number, present: number): void {
      if (isPossible(reached, present)) {
        until = reached;
        ready.resolve();
      } else {
        until = Number.NEGATIVE_INFINITY;
      }
    },

    /** Lets nothing count as complete until the next {@link advance}. */
    forget(): void {
      until = Number.NEGATIVE_INFINITY;
    },
  };
}

function createPromise() {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
