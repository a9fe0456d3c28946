import { afterPendingIo } from "./event-loop.js";

const timedOut = Symbol("timed out");

/**
 * Waits for a promise for at most `ms` milliseconds, then returns or throws the
 * result of `onTimeout`. The timer does not keep the process running unless
 * `keepsRunning` is set. Unlike `AbortSignal.timeout`, it does not expire before
 * pending input has been read.
 */
export async function withTimeout<T, Fallback>(
  promise: Promise<T>,
  ms: number,
  onTimeout: () => Fallback,
  { keepsRunning = false } = {},
): Promise<T | Fallback> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<typeof timedOut>((resolve) => {
    timer = setTimeout(
      afterPendingIo(() => resolve(timedOut)),
      ms,
    );
    if (!keepsRunning) {
      timer.unref();
    }
  });
  try {
    const first = await Promise.race([promise, timeout]);
    return first === timedOut ? onTimeout() : first;
  } finally {
    clearTimeout(timer);
  }
}

export interface Timeout {
  cancel(): void;
}

/** Timeouts that all have the same duration. */
export interface TimerQueue {
  /** Calls `expire` after the duration, unless the timeout is canceled. */
  start(expire: () => void): Timeout;
}

/**
 * Creates timeouts of `duration` milliseconds. They expire in the order in
 * which they start, so one timer serves all of them; a timer per call would
 * cost more than the call. If `maxSize` timeouts are pending, starting another
 * expires the oldest.
 */
export function createTimerQueue(duration: number, maxSize = Number.POSITIVE_INFINITY): TimerQueue {
  const list = { size: 0 } as ListHead;
  list.before = list;
  list.after = list;
  let isTimerSet = false;

  function expireFirst(): void {
    const first = list.after;
    const { expire } = first;
    first.cancel();
    expire();
  }

  function expireDue(): void {
    const now = performance.now();
    try {
      for (let first = list.after; first !== list && first.due <= now; first = list.after) {
        expireFirst();
      }
    } finally {
      isTimerSet = list.after !== list;
      if (isTimerSet) {
        setTimeout(onTimer, list.after.due - now).unref();
      }
    }
  }

  const onTimer = afterPendingIo(expireDue);

  return {
    start(expire) {
      if (list.size >= maxSize) {
        expireFirst();
      }
      const entry = new Entry(performance.now() + duration, expire, list);
      if (!isTimerSet) {
        isTimerSet = true;
        setTimeout(onTimer, duration).unref();
      }
      return entry;
    },
  };
}

/** The sentinel of a circular list. */
interface ListHead extends Entry {
  size: number;
}

/** An entry of the circular list. The oldest follows the sentinel. */
class Entry implements Timeout {
  before: Entry;
  after: Entry;

  constructor(
    readonly due: number,
    public expire: () => void,
    private readonly list: ListHead,
  ) {
    list.size++;
    this.before = list.before;
    this.after = list;
    list.before.after = this;
    list.before = this;
  }

  /** Idempotent. Drops all references, so that an old-generation entry does not keep garbage alive. */
  cancel(): void {
    if (this.after !== this) {
      this.list.size--;
    }
    this.before.after = this.after;
    this.after.before = this.before;
    this.before = this;
    this.after = this;
    this.expire = noop;
  }
}

const noop = () => {};
