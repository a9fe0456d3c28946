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

/** Waiters by tenant, resumed round-robin. */
const waiting = new Map<string, (() => void)[]>();

/**
 * Yields to the event loop before each part of a long computation. Resolves one waiter per tick,
 * so each tick runs at most one part. Many computations may start in one tick, so their first
 * parts need it too. Tenants are resumed round-robin, so that one with many computations does not
 * delay the others. Work before the tenant is known counts as that of a tenant without a name.
 */
export function yieldToEventLoop(tenant = ""): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.size === 0) {
      setImmediate(resumeNext);
    }
    const own = waiting.get(tenant);
    if (own) {
      own.push(resolve);
    } else {
      waiting.set(tenant, [resolve]);
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

/** Paces the steps of a long computation of a tenant. `throwIfCanceled` runs whenever it has yielded. */
export function createPace(tenant: string, throwIfCanceled: () => void = () => {}): Pace {
  let shouldYield = startTimeSlice();

  async function resume(): Promise<void> {
    await yieldToEventLoop(tenant);
    throwIfCanceled();
    shouldYield = startTimeSlice();
  }

  return () => (shouldYield() ? resume() : undefined);
}

/**
 * Returns a promise to wait for before a long computation that has no steps, if this tick has no
 * time left. Without one, the computation must start at once: others check in between otherwise.
 */
export function waitForTime(tenant: string): Promise<void> | undefined {
  return createPace(tenant)();
}

function resumeNext(): void {
  const [next] = waiting;
  if (next) {
    const [tenant, own] = next;
    own.shift()?.();
    // It is resumed again after the others.
    waiting.delete(tenant);
    if (own.length > 0) {
      waiting.set(tenant, own);
    }
  }
  if (waiting.size > 0) {
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
