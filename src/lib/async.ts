/** A value or a promise. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Applies a function to a value, synchronously if the value is not a promise.
 * `await` always defers, which is measurable on calls that never wait.
 */
export function mapMaybePromise<T, R>(
  value: MaybePromise<T>,
  map: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(map) : map(value);
}

/** How an iteration ended: all items were read, the reader stopped early, or the source failed. */
export type IteratorEnd =
  | { readonly how: "finished" }
  | { readonly how: "left" }
  | { readonly how: "failed"; readonly reason: unknown };

/**
 * Passes items on and calls `onEnd` once when the iteration ends. An error that
 * the callback throws reaches the reader; if it throws none, a failure looks
 * like a normal end. Written by hand because a generator costs more per item.
 */
export function onIteratorEnd<T>(
  items: AsyncIterable<T>,
  onEnd: (end: IteratorEnd) => void,
): AsyncIterableIterator<T> {
  const source = items[Symbol.asyncIterator]();
  const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
  let isOver = false;

  function end(how: IteratorEnd): IteratorReturnResult<undefined> {
    if (!isOver) {
      isOver = true;
      onEnd(how);
    }
    return done;
  }

  const pass = (result: IteratorResult<T>) => (result.done ? end({ how: "finished" }) : result);
  const fail = (reason: unknown) => end({ how: "failed", reason });

  return {
    next: () => (isOver ? Promise.resolve(done) : source.next().then(pass, fail)),
    async return() {
      try {
        await source.return?.();
      } finally {
        end({ how: "left" });
      }
      return done;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/**
 * Opens a stream with a signal that aborts when either of two signals does.
 * `AbortSignal.any` would leak one entry per stream on a signal that lasts as
 * long as the process. `mapError` maps a failure to the error to throw, or to
 * `undefined` to end the stream normally.
 */
export function linkAbortSignals<T>(
  one: AbortSignal,
  other: AbortSignal,
  open: (signal: AbortSignal) => AsyncIterable<T>,
  mapError: (reason: unknown) => unknown,
): AsyncIterable<T> {
  const controller = new AbortController();
  const signals = [one, other];
  const abort = () => controller.abort(signals.find(({ aborted }) => aborted)?.reason);
  for (const signal of signals) {
    signal.addEventListener("abort", abort);
  }
  if (one.aborted || other.aborted) {
    abort();
  }
  return onIteratorEnd(open(controller.signal), (end) => {
    for (const signal of signals) {
      signal.removeEventListener("abort", abort);
    }
    const failure = end.how === "failed" ? mapError(end.reason) : undefined;
    if (failure !== undefined) {
      throw failure;
    }
  });
}
