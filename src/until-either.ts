/**
 * Opens a stream with a signal that is given, with its reason, when either of two is.
 * `AbortSignal.any` would leave a trace of each stream at a signal that lives
 * as long as the process.
 */
export async function* untilEither<T>(
  one: AbortSignal,
  other: AbortSignal,
  open: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const controller = new AbortController();
  const signals = [one, other];
  const abort = () => controller.abort(signals.find(({ aborted }) => aborted)?.reason);
  for (const signal of signals) {
    signal.addEventListener("abort", abort);
  }
  if (one.aborted || other.aborted) {
    abort();
  }
  try {
    yield* open(controller.signal);
  } finally {
    for (const signal of signals) {
      signal.removeEventListener("abort", abort);
    }
  }
}
