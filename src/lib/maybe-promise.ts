/** A value, or a promise of it. */
export type MaybePromise<T> = T | Promise<T>;

/**
 * Applies a function to a value, at once if the value is not a promise.
 * `await` always defers, which is measurable on calls that never wait.
 */
export function mapMaybePromise<T, R>(
  value: MaybePromise<T>,
  map: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return value instanceof Promise ? value.then(map) : map(value);
}
