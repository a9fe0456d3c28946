import { constants } from "node:os";
import type { RootDatabase } from "lmdb";

/** One piece of work that waits to be done, or to be on disk. */
interface Entry {
  readonly work: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  /** When to give up, as `performance.now()` tells time. */
  readonly until: number;
  /** Those that share its transaction. */
  readonly batch: Batch;
  outcome?: { readonly result: unknown } | { readonly reason: unknown };
}

/** What one transaction does, in its order. What is given up is taken out. */
type Batch = Set<Entry>;

/**
 * Runs work in transactions. All that waits when one begins shares it, and
 * with it the sync of its commit, yet work that throws takes back only its own
 * writes. What is not done in time is given up: a commit can hang for as long
 * as another process, stopped at the wrong moment, holds the lock, and after
 * an error in the very last page written. What was given up before its
 * transaction began is not done later, when nobody expects it any more.
 */
export interface WriteQueue {
  /** Resolves when what the work wrote is on disk. */
  run<T>(work: () => T): Promise<T>;

  /** Inside work, tells apart what is taken back as one: what is known of writes from before may be wrong. */
  attempt(): number;
}

export function createWriteQueue(
  root: RootDatabase,
  timeout: number,
  onWrite: () => void,
): WriteQueue {
  let gathering: Batch | undefined;
  /** In the order in which they are to be given up. */
  const waiting = new Set<Entry>();
  let timer: NodeJS.Timeout | undefined;
  let attempts = 0;

  /** Begins to gather what the next transaction will do. */
  function gather(): Batch {
    const batch: Batch = new Set();
    root
      .transaction(() => {
        gathering = undefined;
        runAll(batch);
      })
      .then(
        () => {
          onWrite();
          settle(batch);
        },
        async (error) => {
          const outcome = { reason: await causeOf(error) };
          for (const entry of batch) {
            entry.outcome = outcome;
          }
          settle(batch);
        },
      );
    return batch;
  }

  // A transaction of its own for each would cost more than most of the work
  // does. That something throws is rare: then all is taken back and done again.
  function runAll(batch: Batch): void {
    attempts++;
    try {
      root.transactionSync(() => {
        for (const entry of batch) {
          entry.outcome = { result: entry.work() };
        }
      });
    } catch {
      for (const entry of batch) {
        runAlone(entry);
      }
    }
  }

  function runAlone(entry: Entry): void {
    attempts++;
    try {
      entry.outcome = { result: root.transactionSync(entry.work) };
    } catch (reason) {
      entry.outcome = { reason };
    }
  }

  function settle(batch: Batch): void {
    // A transaction that cannot even begin does not run what was gathered for it.
    if (gathering === batch) {
      gathering = undefined;
    }
    for (const entry of batch) {
      waiting.delete(entry);
      if (entry.outcome && "result" in entry.outcome) {
        entry.resolve(entry.outcome.result);
      } else {
        entry.reject(entry.outcome?.reason);
      }
    }
    if (waiting.size === 0) {
      clearTimeout(timer);
      timer = undefined;
    }
  }

  function giveUp(): void {
    timer = undefined;
    const now = performance.now();
    for (const entry of waiting) {
      if (entry.until > now) {
        timer = setTimeout(giveUp, entry.until - now);
        return;
      }
      waiting.delete(entry);
      entry.batch.delete(entry);
      entry.reject(lateness(timeout));
    }
  }

  return {
    run(work) {
      return new Promise((resolve, reject) => {
        const until = performance.now() + timeout;
        gathering ??= gather();
        const entry = { work, resolve, reject, until, batch: gathering } as Entry;
        gathering.add(entry);
        waiting.add(entry);
        timer ??= setTimeout(giveUp, timeout);
      });
    },

    attempt: () => attempts,
  };
}

/** The error of what is given up. */
export function lateness(timeout: number): Error {
  return Object.assign(new Error(`no answer in ${timeout} ms`), {
    code: constants.errno.ETIMEDOUT,
  });
}

/** A commit that failed tells why by a promise of its own, which ends the process if nobody looks. */
async function causeOf(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<never> };
  return commitError ? commitError.catch((cause) => cause) : error;
}
