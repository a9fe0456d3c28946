import { createBell } from "../bell.js";
import type { Window } from "./window.js";

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
  const news = createBell();
  const room = createBell();
  let failure: { readonly reason: unknown } | undefined;
  let isOver = false;

  function stop(): void {
    isOver = true;
    news.ring();
    room.ring();
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
      news.ring();
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
        room.ring();
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
