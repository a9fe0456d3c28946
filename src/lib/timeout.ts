import { afterPendingIo } from "./event-loop.js";

const timeIsUp = Symbol("the time is up");

/**
 * Waits for an answer, but no longer than so many milliseconds: then it is
 * what `late` answers or throws. That someone waits keeps no process running,
 * unless it is to.
 */
export async function withTimeout<T, Late>(
  answer: Promise<T>,
  patience: number,
  late: () => Late,
  { keepsRunning = false } = {},
): Promise<T | Late> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<typeof timeIsUp>((resolve) => {
    timer = setTimeout(
      afterPendingIo(() => resolve(timeIsUp)),
      patience,
    );
    if (!keepsRunning) {
      timer.unref();
    }
  });
  try {
    const first = await Promise.race([answer, end]);
    return first === timeIsUp ? late() : first;
  } finally {
    clearTimeout(timer);
  }
}

/** Something that is to happen unless it is called off. */
export interface Timeout {
  cancel(): void;
}

/** Sets timeouts that all take as long. */
export interface TimerQueue {
  /** Calls `expire` after the time of these timeouts, unless it is called off. */
  start(expire: () => void): Timeout;
}

/**
 * Creates timeouts of so many milliseconds. As all take as long, they end in
 * the order in which they start, so that one timer serves them all: a timer
 * for each call would cost more than the call. Where there are to be no more
 * than so many, the first expires for another that starts.
 */
export function createTimerQueue(duration: number, most = Number.POSITIVE_INFINITY): TimerQueue {
  const end = { size: 0 } as End;
  end.before = end;
  end.after = end;
  let isTimerSet = false;

  function expireFirst(): void {
    const first = end.after;
    const { expire } = first;
    first.cancel();
    expire();
  }

  function expireDue(): void {
    const now = performance.now();
    try {
      for (let first = end.after; first !== end && first.due <= now; first = end.after) {
        expireFirst();
      }
    } finally {
      isTimerSet = end.after !== end;
      if (isTimerSet) {
        setTimeout(lookForDue, end.after.due - now).unref();
      }
    }
  }

  const lookForDue = afterPendingIo(expireDue);

  return {
    start(expire) {
      if (end.size >= most) {
        expireFirst();
      }
      const entry = new Entry(performance.now() + duration, expire, end);
      if (!isTimerSet) {
        isTimerSet = true;
        setTimeout(lookForDue, duration).unref();
      }
      return entry;
    },
  };
}

/** Where a ring begins and ends, with how many there are in it. */
interface End extends Entry {
  size: number;
}

/** A place in a ring, in which the one who waits longest follows the end. */
class Entry implements Timeout {
  before: Entry;
  after: Entry;

  constructor(
    readonly due: number,
    public expire: () => void,
    private readonly end: End,
  ) {
    end.size++;
    this.before = end.before;
    this.after = end;
    end.before.after = this;
    end.before = this;
  }

  /** May be called again, to no effect. Lets go of everything: a collector may take long to see that it is not needed. */
  cancel(): void {
    if (this.after !== this) {
      this.end.size--;
    }
    this.before.after = this.after;
    this.after.before = this.before;
    this.before = this;
    this.after = this;
    this.expire = nothing;
  }
}

const nothing = () => {};
