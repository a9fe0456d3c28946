import { waitForNextTick } from "../../src/lib/event-loop.js";

/** Counts the turns of the event loop until something is done, well or not. */
export async function countTicksUntil(done: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isDone = false;
  const settle = () => {
    isDone = true;
  };
  void done.then(settle, settle);
  while (!isDone) {
    await waitForNextTick();
    turns++;
  }
  return turns;
}

/**
 * Does something, and then keeps this process from doing anything for so many
 * milliseconds, as a busy machine may. What it does next is what timers are
 * there for that are due by then; only after that it reads what has come.
 */
export function runThenBlock<T>(work: () => T, milliseconds: number): Promise<Awaited<T>> {
  return new Promise((resolve) => {
    setImmediate(() => {
      const done = work();
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
      resolve(done as Awaited<T>);
    });
  });
}
