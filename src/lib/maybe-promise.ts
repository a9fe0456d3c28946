/** What is there now, or will be. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Goes on with what is there at once, and with what is promised when it comes.
 * `await` would put off even what is there, at a price that a call which
 * waits for nothing would pay many times over.
 */
export function mapMaybePromise<T, R>(
  value: MaybePromise<T>,
  go: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(go) : go(value);
}
