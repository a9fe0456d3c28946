/**
 * Cancels a call when its client disconnects or its deadline passes. Every call
 * has one, so it is cheaper than an AbortController: the signal is created on demand.
 */
export class Cancellation {
  /** Set once the call is canceled. */
  reason?: Error;
  private listener: ((reason: Error) => void) | undefined;
  private controller?: AbortController;
  private timer?: NodeJS.Timeout;
  private deadline?: number;

  /** Cancels the call. Later reasons are ignored. */
  cancel(reason: Error): void {
    if (this.reason) {
      return;
    }
    this.reason = reason;
    this.listener?.(reason);
    this.controller?.abort(reason);
  }

  /** Cancels the call after a number of milliseconds, unless `clearTimer` is called first. */
  cancelAfter(milliseconds: number, reason: () => Error): void {
    this.deadline = performance.now() + milliseconds;
    if (milliseconds > 0) {
      this.timer = setTimeout(() => this.cancel(reason()), milliseconds);
    } else {
      this.cancel(reason());
    }
  }

  clearTimer(): void {
    clearTimeout(this.timer);
  }

  /** Milliseconds until the deadline, if the client sent one. */
  get timeLeft(): number | undefined {
    return this.deadline === undefined ? undefined : Math.max(0, this.deadline - performance.now());
  }

  /** Sets the listener. There is only one: a new listener replaces the previous one. */
  onCancel(listener: (reason: Error) => void): void {
    this.listener = listener;
  }

  /** Removes the listener, unless another one has replaced it. */
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
