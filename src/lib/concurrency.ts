import { waitForNextTick } from "./event-loop.js";

interface MapOptions<T, R> {
  readonly items: AsyncIterable<T>;
  readonly map: (item: T) => Promise<R>;
  readonly window: ConcurrencyWindow;
  /** Stops reading. The results of items read so far are yielded, then the signal's reason is thrown. */
  readonly signal: AbortSignal;
}

/**
 * Maps items concurrently and yields the results in order. A reader that does
 * not take results stops the reading of items (backpressure). Unlike Node's
 * `Readable.map`, streams share a limit, and an abort still yields finished results.
 */
export async function* mapConcurrently<T, R>(options: MapOptions<T, R>): AsyncGenerator<R> {
  const { items, map, window, signal } = options;
  const results: Promise<R>[] = [];
  const resultAdded = createSignal();
  const slotFreed = createSignal();
  let failure: { readonly reason: unknown } | undefined;
  let isOver = false;

  function stop(): void {
    isOver = true;
    resultAdded.notify();
    slotFreed.notify();
  }

  function abort(): void {
    if (!isOver) {
      failure = { reason: signal.reason };
      stop();
    }
  }

  async function read(): Promise<void> {
    for await (const item of items) {
      if (isOver) {
        return;
      }
      const result = map(item);
      // A rejection is thrown when its result is yielded. Until then it must not count as unhandled.
      result.catch(() => {});
      results.push(result);
      resultAdded.notify();
      while (!isOver && results.length >= window.size()) {
        await slotFreed.wait();
      }
    }
  }

  window.enter();
  signal.addEventListener("abort", abort);
  if (signal.aborted) {
    abort();
  }
  read()
    .catch((reason) => {
      failure ??= { reason };
    })
    .finally(stop);
  try {
    while (!isOver || results.length > 0) {
      const result = results.shift();
      if (result) {
        slotFreed.notify();
        yield await result;
      } else {
        await resultAdded.wait();
      }
    }
    if (failure) {
      throw failure.reason;
    }
  } finally {
    signal.removeEventListener("abort", abort);
    stop();
    window.leave();
  }
}

/** How many items of a stream may be in progress or waiting to be read. */
export interface ConcurrencyWindow {
  size(): number;
  /** Called when a stream starts. */
  enter(): void;
  /** Called when a stream has ended. */
  leave(): void;
}

interface ConcurrencyWindowOptions {
  /** The limit for all streams together. */
  readonly total: number;
  /** The limit per stream if there are few streams. */
  readonly max: number;
  /** The limit per stream if there are many streams. */
  readonly min: number;
}

/** Creates a window that streams share, to bound the memory of many streams. */
export function createConcurrencyWindow({
  total,
  max,
  min,
}: ConcurrencyWindowOptions): ConcurrencyWindow {
  let streams = 0;
  return {
    size: () => Math.max(min, Math.min(max, Math.floor(total / streams))),
    enter() {
      streams++;
    },
    leave() {
      streams--;
    },
  };
}

/**
 * Batches all requests of one tick of the event loop. The work starts after the
 * tick, so each result is as fresh as if it were requested alone. Results have
 * the order of the items. `dataloader` would cache them, and batch per microtask.
 */
export function batchPerTick<T, R>(
  work: (items: readonly T[]) => Promise<readonly R[]>,
): (item: T) => Promise<R> {
  let batch: T[] = [];
  let results: Promise<readonly R[]> | undefined;

  return async (item) => {
    const index = batch.push(item) - 1;
    results ??= waitForNextTick().then(() => {
      const items = batch;
      batch = [];
      results = undefined;
      return work(items);
    });
    return (await results)[index] as R;
  };
}

/**
 * Runs at most a fixed number of tasks at a time. The others wait in order of
 * arrival. Node has no semaphore, and this one is too small to need `p-limit`.
 */
export type Semaphore = <T>(work: () => Promise<T>) => Promise<T>;

export function createSemaphore(limit: number): Semaphore {
  const waiting: (() => void)[] = [];
  let free = limit;

  return async (work) => {
    if (free > 0) {
      free--;
    } else {
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) {
        next();
      } else {
        free++;
      }
    }
  };
}

/** A separate semaphore per key, which exists only while it is used. `p-limit` has no keys. */
type KeyedSemaphore = <T>(key: string, work: () => Promise<T>) => Promise<T>;

export function createKeyedSemaphore(limit: number): KeyedSemaphore {
  const inUse = new Map<string, { readonly semaphore: Semaphore; users: number }>();

  return async (key, work) => {
    const entry = inUse.get(key) ?? { semaphore: createSemaphore(limit), users: 0 };
    inUse.set(key, entry);
    entry.users++;
    try {
      return await entry.semaphore(work);
    } finally {
      entry.users--;
      if (entry.users === 0) {
        inUse.delete(key);
      }
    }
  };
}

/**
 * An auto-reset event for one waiter: a notification without a waiter ends the
 * next wait. `events.once` would miss such a notification.
 */
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
