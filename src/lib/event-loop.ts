import { performance } from "node:perf_hooks";

/**
 * Resolves when the present turn of the event loop is over. An immediate, not
 * a microtask: each socket that is read in a turn runs its microtasks before
 * the next one, and what waits for them would share with nobody.
 */
export function waitForNextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const waiting: (() => void)[] = [];

/**
 * Yields to the event loop between the parts of long work. It resolves for one
 * waiter in each turn, first come, first served, so that a turn has one part of
 * one long work only.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) {
      setImmediate(admitNext);
    }
  });
}

function admitNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) {
    setImmediate(admitNext);
  }
}

const { nodeTiming } = performance;

/** Tells turns of the event loop apart: what runs in one turn is told the same number. */
export function currentTick(): number {
  return nodeTiming.uvMetricsInfo.loopCount;
}

/** Has work done when the present turn of the event loop is over, once however often it is asked for until then. */
export function coalescePerTick(work: () => void): () => void {
  let isSet = false;

  function begin(): void {
    isSet = false;
    work();
  }

  return () => {
    if (!isSet) {
      isSet = true;
      setImmediate(begin);
    }
  };
}

/**
 * Lets what is to happen when a time is up wait until all that has come by then
 * is read. Timers run before sockets are read: where the process stood still
 * for a while, the time is up for what came in time, too. What waits so is no
 * longer called off with its timer.
 */
export function afterPendingIo(happen: () => void): () => void {
  return () => {
    setImmediate(happen);
  };
}
