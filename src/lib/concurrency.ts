import { waitForNextTick } from "./event-loop.js";
import { createSignal } from "./signal.js";

interface MapOptions<T, R> {
  readonly items: AsyncIterable<T>;
  readonly map: (item: T) => Promise<R>;
  readonly window: Window;
  /** Given when no more items are to be read: the answers to those before come, then its reason is thrown. */
  readonly signal: AbortSignal;
}

/**
 * Answers what `map` makes of each item, in the order of the items. One that
 * does not take the answers stops the reading of items.
 */
export async function* mapConcurrently<T, R>(options: MapOptions<T, R>): AsyncGenerator<R> {
  const { items, map, window, signal } = options;
  const answers: Promise<R>[] = [];
  const news = createSignal();
  const room = createSignal();
  let failure: { readonly reason: unknown } | undefined;
  let isOver = false;

  function stop(): void {
    isOver = true;
    news.notify();
    room.notify();
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
      const answer = map(item);
      // One that fails is noticed in its turn, and is no stray failure until then.
      answer.catch(() => {});
      answers.push(answer);
      news.notify();
      while (!isOver && answers.length >= window.size()) {
        await room.wait();
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
    while (!isOver || answers.length > 0) {
      const answer = answers.shift();
      if (answer) {
        room.notify();
        yield await answer;
      } else {
        await news.wait();
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

/** How many items of a stream may be under way, or wait to be taken, at a time. */
export interface Window {
  size(): number;
  /** Called when a stream begins and when it has ended. */
  enter(): void;
  leave(): void;
}

interface WindowOptions {
  /** How many all streams may have together. */
  readonly total: number;
  /** How many each may have where there are few of them, and where there are many. */
  readonly max: number;
  readonly min: number;
}

/** Creates a window that streams share, so that many of them need no more memory than a few. */
export function createWindow({ total, max, min }: WindowOptions): Window {
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
 * Does what is asked for in one turn of the event loop together, after it: to
 * each who asks it is as fresh as if it was done for them alone. The answers
 * are at the places of the items.
 */
export function batchPerTick<T, R>(
  work: (items: readonly T[]) => Promise<readonly R[]>,
): (item: T) => Promise<R> {
  let gathered: T[] = [];
  let answers: Promise<readonly R[]> | undefined;

  return async (item) => {
    const at = gathered.push(item) - 1;
    answers ??= waitForNextTick().then(() => {
      const items = gathered;
      gathered = [];
      answers = undefined;
      return work(items);
    });
    return (await answers)[at] as R;
  };
}
