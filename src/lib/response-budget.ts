import type { MaybePromise } from "./async.js";
import type { Cancellation } from "./cancellation.js";

/** Limits the memory that the responses of all calls take together, until their clients have read them. */
export interface ResponseBudget {
  /** Bytes of responses that are built or not read yet. */
  readonly used: number;

  /**
   * Reserves memory for a response. Resolves with `false` if others keep the memory
   * for too long, or the call is canceled. A response of unknown size has 0 bytes. An
   * owner gets half of the budget, so that its slow readers do not keep the responses of
   * others waiting.
   */
  reserve(owner: string, bytes: number, cancellation: Canceled): MaybePromise<boolean>;

  /** Changes the bytes that are reserved for a response. */
  update(owner: string, before: number, now: number): void;
}

type Canceled = Pick<Cancellation, "reason">;

interface Waiter {
  readonly owner: string;
  readonly bytes: number;
  readonly cancellation: Canceled;
  settle(isReserved: boolean): void;
}

/** Milliseconds that a response waits for memory. */
const defaultMaxWait = 2_000;

export function createResponseBudget(limit: number, maxWait = defaultMaxWait): ResponseBudget {
  const usedBy = new Map<string, number>();
  const waiting = new Set<Waiter>();
  let used = 0;

  /** The only response of all, and within the budget the only one of an owner, may have any size. */
  function fits(owner: string, bytes: number): boolean {
    // Lists get half, so that those who read them slowly do not keep single records waiting.
    const max = bytes > 0 ? limit / 2 : limit;
    return hasRoom(usedBy.get(owner) ?? 0, bytes, max / 2) && hasRoom(used, bytes, max);
  }

  function add(owner: string, change: number): void {
    used += change;
    const own = (usedBy.get(owner) ?? 0) + change;
    if (own > 0) {
      usedBy.set(owner, own);
    } else {
      usedBy.delete(owner);
    }
  }

  function resumeWaiting(): void {
    for (const { owner, bytes, cancellation, settle } of waiting) {
      if (cancellation.reason) {
        settle(false);
      } else if (fits(owner, bytes)) {
        add(owner, bytes);
        settle(true);
      }
    }
  }

  function wait(owner: string, bytes: number, cancellation: Canceled): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        owner,
        bytes,
        cancellation,
        settle(isReserved) {
          clearTimeout(timer);
          waiting.delete(waiter);
          resolve(isReserved);
        },
      };
      const timer = setTimeout(() => waiter.settle(false), maxWait);
      waiting.add(waiter);
    });
  }

  return {
    get used() {
      return used;
    },

    reserve(owner, bytes, cancellation) {
      if (fits(owner, bytes)) {
        add(owner, bytes);
        return true;
      }
      return wait(owner, bytes, cancellation);
    },

    update(owner, before, now) {
      add(owner, now - before);
      if (now < before) {
        resumeWaiting();
      }
    },
  };
}

function hasRoom(used: number, bytes: number, limit: number): boolean {
  return used === 0 || (used < limit && used + bytes <= limit);
}
