import { waitForNextTick } from "../../src/lib/event-loop.js";

/** Counts the event loop iterations until a promise settles. */
export async function countTicksUntil(promise: Promise<unknown>): Promise<number> {
  let ticks = 0;
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  void promise.then(settle, settle);
  while (!isSettled) {
    await waitForNextTick();
    ticks++;
  }
  return ticks;
}

/**
 * Runs `work`, then blocks the event loop like a busy machine. Timers that are
 * due by then fire before pending I/O is read.
 */
export function runThenBlock<T>(work: () => T, milliseconds: number): Promise<Awaited<T>> {
  return new Promise((resolve) => {
    setImmediate(() => {
      const result = work();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
      resolve(result as Awaited<T>);
    });
  });
}
