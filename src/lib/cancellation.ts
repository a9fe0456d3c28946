/**
 * The end of a call before its answer: its caller went away, or its time is
 * up. It costs next to nothing where nobody asks: a signal is made for those
 * who do.
 */
export class Cancellation {
  /** Why the call was given up; absent while it is not. */
  reason?: Error;
  private listener: ((reason: Error) => void) | undefined;
  private controller?: AbortController;
  private timer?: NodeJS.Timeout;
  private due?: number;

  /** Gives the call up. Only the first reason counts. */
  cancel(reason: Error): void {
    if (this.reason) {
      return;
    }
    this.reason = reason;
    this.listener?.(reason);
    this.controller?.abort(reason);
  }

  /** Gives the call up in so many milliseconds, unless that is called off. */
  cancelAfter(milliseconds: number, reason: () => Error): void {
    this.due = performance.now() + milliseconds;
    if (milliseconds > 0) {
      this.timer = setTimeout(() => this.cancel(reason()), milliseconds);
    } else {
      this.cancel(reason());
    }
  }

  clearTimer(): void {
    clearTimeout(this.timer);
  }

  /** How many milliseconds the caller still waits, where it said so. */
  get timeLeft(): number | undefined {
    return this.due === undefined ? undefined : Math.max(0, this.due - performance.now());
  }

  /** Sets the listener, which is called when the call is given up. Of several only the last is. */
  onCancel(listener: (reason: Error) => void): void {
    this.listener = listener;
  }

  /** Lets go of a listener, unless another has taken its place. */
  offCancel(listener: (reason: Error) => void): void {
    if (this.listener === listener) {
      this.listener = undefined;
    }
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.reason) {
        this.controller.abort(this.reason);
      }
    }
    return this.controller.signal;
  }
}
