/** Spreads or collects work by ticks of the event loop. Node's `scheduler.yield` resumes all waiters in one tick. */
import { performance } from "node:perf_hooks";

/**
 * Resolves after the current tick of the event loop. A microtask would be too
 * early: microtasks run after each socket read, so calls that arrive on several
 * sockets in one tick could not be batched.
 */
export function waitForNextTick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

const waiting: (() => void)[] = [];

/**
 * Yields to the event loop before each part of a long computation. Resolves
 * one waiter per tick, in order, so each tick runs at most one part. Many
 * computations may start in one tick, so their first parts need it too.
 */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) {
      setImmediate(resumeNext);
    }
  });
}

/** Milliseconds of long computations per tick. */
const sliceMs = 10;

let sliceTick = -1;
let sliceEnd = 0;

/**
 * Returns a function that returns whether a long computation should yield. All
 * computations of a tick share its time, because many may start in one tick.
 */
export function startTimeSlice(): () => boolean {
  const tick = currentTick();
  if (tick !== sliceTick) {
    sliceTick = tick;
    sliceEnd = performance.now() + sliceMs;
  }
  const end = sliceEnd;
  return () => performance.now() >= end;
}

/** Returns a promise to wait for if a long computation should yield. It rejects if the computation was canceled. */
export type Pace = () => Promise<void> | undefined;

/** Paces the steps of a long computation. `throwIfCanceled` runs whenever it has yielded. */
export function createPace(throwIfCanceled: () => void = () => {}): Pace {
  let shouldYield = startTimeSlice();

  async function resume(): Promise<void> {
    await yieldToEventLoop();
    throwIfCanceled();
    shouldYield = startTimeSlice();
  }

  return () => (shouldYield() ? resume() : undefined);
}

/**
 * Returns a promise to wait for before a long computation that has no steps, if this tick has no
 * time left. Without one, the computation must start at once: others check in between otherwise.
 */
export function waitForTime(): Promise<void> | undefined {
  return createPace()();
}

function resumeNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) {
    setImmediate(resumeNext);
  }
}

const { nodeTiming } = performance;

/** The number of the current tick of the event loop. */
export function currentTick(): number {
  return nodeTiming.uvMetricsInfo.loopCount;
}

/** Returns a function that schedules work after the current tick, at most once per tick. */
export function coalescePerTick(work: () => void): () => void {
  let isScheduled = false;

  function run(): void {
    isScheduled = false;
    work();
  }

  return () => {
    if (!isScheduled) {
      isScheduled = true;
      setImmediate(run);
    }
  };
}

/**
 * Delays a timer callback until pending input has been read. Timers run before
 * sockets are read, so after a pause of the process a timeout would fire for
 * data that arrived in time. Clearing the timer no longer stops the callback
 * once it waits here.
 */
export function afterPendingIo(callback: () => void): () => void {
  return () => {
    setImmediate(callback);
  };
}
