import { constants } from "node:os";
import type { RootDatabase } from "lmdb";

/**
 * The priority of a write:
 * - `ordinary` writes may grow the data. They fail rather than use the reserve.
 * - `maintenance` frees space, or takes almost none.
 * - a `revocation` removes access. It runs before other waiting writes, and
 *   never shares a transaction with them.
 */
export type WriteKind = "ordinary" | "maintenance" | "revocation";

/** Work that waits to run, or to be on disk. */
interface Entry {
  work: () => unknown;
  readonly kind: WriteKind;
  resolve: (result: unknown) => void;
  reject: (reason: unknown) => void;
  /** By `performance.now()`. */
  readonly deadline: number;
  /** The entries that wait with it, later those that share its transaction. */
  batch: Batch;
  outcome?: Outcome | undefined;
}

type Outcome = { readonly result: unknown } | { readonly reason: unknown };

/** Entries in order. Timed-out entries are removed. */
type Batch = Set<Entry>;

/** Entries per transaction, which bounds its size. */
const maxBatch = 256;
const maxRevocations = 32;

/** Transactions of revocations in a row while other work waits. */
const maxConsecutiveRevocations = 8;

/** Guards the disk space that is reserved for revocations. Called inside a transaction. */
export interface SpaceGuard {
  /** Returns how many of the wanted ordinary writes have space, or throws if none has. */
  checkSpace(wanted: number): number;

  /** Frees reserved space for writes that must not fail. */
  makeSpace(wanted: number): void;
}

/**
 * Waiting work shares the next transaction and its sync, revocations only with each other. Work that throws rolls
 * back only its own writes. Work times out, because a commit can hang: after an error in the last page written, or
 * while a stopped process holds the lock. Work that timed out before its transaction started does not run.
 */
interface WriteQueue {
  /** Resolves when the writes are on disk. */
  run<T>(work: () => T, kind: WriteKind): Promise<T>;

  /** Inside work, the number of the current attempt. Writes of one attempt are rolled back together. */
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
  /** In the order of their deadlines. */
  const pending = new Set<Entry>();
  let timer: NodeJS.Timeout | undefined;
  /** When the current transaction was requested. */
  let startedAt: number | undefined;
  let consecutiveRevocations = 0;
  let attempts = 0;

  // lmdb merges transactions that are requested at the same time, so the next
  // is requested when the previous one is on disk.
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
      // If the transaction cannot even start, all waiting work fails.
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

  /** A hanging transaction may continue only when the next is requested. */
  function startIfIdle(): void {
    const isIdle = startedAt === undefined || performance.now() > startedAt + timeout;
    if (isIdle && revocations.size + others.size > 0) {
      runNext();
    }
  }

  function takeBatch(): Batch {
    if (
      revocations.size > 0 &&
      (others.size === 0 || consecutiveRevocations < maxConsecutiveRevocations)
    ) {
      consecutiveRevocations++;
      const batch = take(revocations, maxRevocations);
      space.makeSpace(batch.size);
      return batch;
    }
    consecutiveRevocations = 0;
    return takeOthers();
  }

  function takeOthers(): Batch {
    const wanted = Math.min(others.size, maxBatch);
    if (wanted === 0) {
      return new Set();
    }
    try {
      return take(others, space.checkSpace(wanted));
    } catch (reason) {
      const batch = take(others, wanted);
      let hasMaintenance = false;
      for (const entry of batch) {
        if (entry.kind === "ordinary") {
          entry.outcome = { reason };
        } else {
          hasMaintenance = true;
        }
      }
      // Unused space could be taken by other programs, so free it only when needed.
      if (hasMaintenance) {
        space.makeSpace(1);
      }
      return batch;
    }
  }

  function take(from: Batch, limit: number): Batch {
    const batch: Batch = new Set();
    for (const entry of from) {
      if (batch.size >= limit) {
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

  // A nested transaction for each entry would cost more than most of the work.
  // If one throws, which is rare, all are rolled back and run again one by one.
  function runAll(batch: Batch): void {
    const remaining = [...batch].filter(({ outcome }) => !outcome);
    attempts++;
    try {
      root.transactionSync(() => {
        for (const entry of remaining) {
          entry.outcome = { result: entry.work() };
        }
      });
    } catch {
      for (const entry of remaining) {
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
      pending.delete(entry);
      if (entry.outcome && "result" in entry.outcome) {
        entry.resolve(entry.outcome.result);
      } else {
        entry.reject(entry.outcome?.reason);
      }
      release(entry);
    }
    if (pending.size === 0) {
      clearTimeout(timer);
      timer = undefined;
    }
  }

  function rejectOverdue(): void {
    timer = undefined;
    const now = performance.now();
    for (const entry of pending) {
      if (entry.deadline > now) {
        timer = setTimeout(rejectOverdue, entry.deadline - now);
        return;
      }
      pending.delete(entry);
      entry.batch.delete(entry);
      entry.reject(timeoutError(timeout));
      release(entry);
    }
  }

  return {
    run(work, kind) {
      return new Promise((resolve, reject) => {
        const deadline = performance.now() + timeout;
        const batch = kind === "revocation" ? revocations : others;
        const entry = { work, kind, resolve, reject, deadline, batch } as Entry;
        batch.add(entry);
        pending.add(entry);
        timer ??= setTimeout(rejectOverdue, timeout);
        startIfIdle();
      });
    },

    attempt: () => attempts,
  };
}

/**
 * Drops the references to the call. lmdb keeps finished transactions reachable for a while, and V8
 * deleted entries of a long-lived set until its next full collection.
 */
function release(entry: Entry): void {
  entry.work = noop;
  entry.resolve = noop;
  entry.reject = noop;
  entry.outcome = undefined;
}

const noop = () => {};

export function timeoutError(timeout: number): Error {
  return Object.assign(new Error(`no response within ${timeout} ms`), {
    code: constants.errno.ETIMEDOUT,
  });
}

/** The cause of a failed commit is a rejected promise, which must be handled. */
async function causeOf(error: unknown): Promise<unknown> {
  const { commitError } = error as { commitError?: Promise<never> };
  return commitError ? commitError.catch((cause) => cause) : error;
}
