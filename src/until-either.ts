import { withEnd } from "./with-end.js";

/**
 * Opens a stream with a signal that is given, with its reason, when either of two is.
 * `AbortSignal.any` would leave a trace of each stream at a signal that lives
 * as long as the process. `explain` makes of a failure what is thrown, or
 * nothing, which ends the stream.
 */
export function untilEither<T>(
  one: AbortSignal,
  other: AbortSignal,
  open: (signal: AbortSignal) => AsyncIterable<T>,
  explain: (reason: unknown) => unknown,
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
  return withEnd(open(controller.signal), (end) => {
    for (const signal of signals) {
      signal.removeEventListener("abort", abort);
    }
    const failure = end.how === "failed" ? explain(end.reason) : undefined;
    if (failure !== undefined) {
      throw failure;
    }
  });
}
