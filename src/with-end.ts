/** How an iteration ends: all items were taken, its reader left, or it failed. */
export type End =
  | { readonly how: "finished" }
  | { readonly how: "left" }
  | { readonly how: "failed"; readonly reason: unknown };

/**
 * Passes items on, and calls back once when that ends. What the callback
 * throws, the reader is thrown; a failure for which it throws nothing is to the
 * reader a mere end. It does by hand what a generator would, which costs less
 * for each item.
 */
export function withEnd<T>(
  items: AsyncIterable<T>,
  onEnd: (end: End) => void,
): AsyncIterableIterator<T> {
  const source = items[Symbol.asyncIterator]();
  const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
  let isOver = false;

  function end(how: End): IteratorReturnResult<undefined> {
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
