import { constants } from "node:os";
import type { RootDatabase } from "lmdb";

/**
 * What a piece of work is:
 * - `ordinary` work may make the data grow. It is refused where that would
 *   take space from the reserve.
 * - `upkeep` frees space, or takes next to none.
 * - a `revocation` takes access away. It never shares a transaction with the
 *   others, and goes before those that wait.
 */
export type WriteKind = "ordinary" | "upkeep" | "revocation";

/** One piece of work that waits to be done, or to be on disk. */
interface Entry {
  readonly work: () => unknown;
  readonly kind: WriteKind;
  readonly resolve: (result: unknown) => void;
  readonly reject: (reason: unknown) => void;
  /** When to give up, as `performance.now()` tells time. */
  readonly until: number;
  /** Those that wait with it, and later those that share its transaction. */
  batch: Batch;
  outcome?: Outcome;
}

type Outcome = { readonly result: unknown } | { readonly reason: unknown };

/** Entries in their order. What is given up is taken out. */
type Batch = Set<Entry>;

/** How many entries share a transaction at most, so that its size is bounded. */
const largestBatch = 256;
const mostRevocations = 32;

/** How many transactions of revocations follow each other while other work waits. */
const mostInARow = 8;

/** The space that revocations can count on, asked inside a transaction. */
export interface SpaceGuard {
  /** How many of so many pieces of ordinary work find space, or throws where none does. */
  checkSpace(wanted: number): number;

  /** Makes space for so many pieces of work that must not fail. */
  makeSpace(wanted: number): void;
}

/**
 * Runs work in transactions, one after the other. All that waits when one
 * begins shares it, and with it the sync of its commit, yet work that throws
 * takes back only its own writes. Revocations share one only with each other.
 * What is not done in time is given up: a commit can hang for as long as
 * another process, stopped at the wrong moment, holds the lock, and after an
 * error in the very last page written. What was given up before its
 * transaction began is not done later, when nobody expects it any more.
 */
export interface WriteQueue {
  /** Resolves when what the work wrote is on disk. */
  run<T>(work: () => T, kind: WriteKind): Promise<T>;

  /** Inside work, tells apart what is taken back as one: what is known of writes from before may be wrong. */
  attempt(): number;
}

export function createWriteQueue(
  root: RootDatabase,
  timeout: number,
  space: SpaceGuard,
  onWrite: () => void,
): WriteQueue {
  const revocations: Batch = new Set();
  const others: Batch = new Set();
  /** In the order in which they are to be given up. */
  const waiting = new Set<Entry>();
  let timer: NodeJS.Timeout | undefined;
  /** When the transaction that is under way was asked for. */
  let startedAt: number | undefined;
  let inARow = 0;
  let attempts = 0;

  // lmdb puts transactions that are asked for at the same time into one, so
  // the next is asked for when the one before is on disk.
  async function runNext(): Promise<void> {
    const started = performance.now();
    startedAt = started;
    let batch: Batch = new Set();
    try {
      await root.transaction(() => {
        batch = takeBatch();
        runAll(batch);
      });
      onWrite();
    } catch (error) {
      const outcome = { reason: await causeOf(error) };
      // A transaction that cannot even begin fails all that waits for it.
      for (const entry of batch.size > 0 ? batch : takeAll()) {
        entry.outcome = outcome;
        batch.add(entry);
      }
    }
    settle(batch);
    if (startedAt === started) {
      startedAt = undefined;
      startIfIdle();
    }
  }

  /** A transaction that hangs may go on only when the next is asked for. */
  function startIfIdle(): void {
    const isIdle = startedAt === undefined || performance.now() > startedAt + timeout;
    if (isIdle && revocations.size + others.size > 0) {
      runNext();
    }
  }

  function takeBatch(): Batch {
    if (revocations.size > 0 && (others.size === 0 || inARow < mostInARow)) {
      inARow++;
      const batch = take(revocations, mostRevocations);
      space.makeSpace(batch.size);
      return batch;
    }
    inARow = 0;
    return takeOthers();
  }

  function takeOthers(): Batch {
    const wanted = Math.min(others.size, largestBatch);
    if (wanted === 0) {
      return new Set();
    }
    try {
      return take(others, space.checkSpace(wanted));
    } catch (reason) {
      const batch = take(others, wanted);
      let hasUpkeep = false;
      for (const entry of batch) {
        if (entry.kind === "ordinary") {
          entry.outcome = { reason };
        } else {
          hasUpkeep = true;
        }
      }
      // Others may fill the disk with space that is made and not used.
      if (hasUpkeep) {
        space.makeSpace(1);
      }
      return batch;
    }
  }

  function take(from: Batch, most: number): Batch {
    const batch: Batch = new Set();
    for (const entry of from) {
      if (batch.size >= most) {
        break;
      }
      from.delete(entry);
      batch.add(entry);
      entry.batch = batch;
    }
    return batch;
  }

  function takeAll(): Entry[] {
    const all = [...revocations, ...others];
    revocations.clear();
    others.clear();
    return all;
  }

  // A transaction of its own for each would cost more than most of the work
  // does. That something throws is rare: then all is taken back and done again.
  function runAll(batch: Batch): void {
    const toDo = [...batch].filter(({ outcome }) => !outcome);
    attempts++;
    try {
      root.transactionSync(() => {
        for (const entry of toDo) {
          entry.outcome = { result: entry.work() };
        }
      });
    } catch {
      for (const entry of toDo) {
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
    run(work, kind) {
      return new Promise((resolve, reject) => {
        const until = performance.now() + timeout;
        const batch = kind === "revocation" ? revocations : others;
        const entry = { work, kind, resolve, reject, until, batch } as Entry;
        batch.add(entry);
        waiting.add(entry);
        timer ??= setTimeout(giveUp, timeout);
        startIfIdle();
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
