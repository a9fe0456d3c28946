/** Waits until the log has the entries of all changes that were acknowledged before. */
import { randomUUID } from "node:crypto";
import type { Collection, Db } from "mongodb";
import { createSignal } from "../../../lib/concurrency.js";
import { StoreUnavailable } from "../../port/errors.js";
import { databaseTime, uuid } from "../documents.js";
import { callDriver, limitsOf } from "../driver-call.js";
import { readCurrentTime } from "../feeds/expiry-scan.js";
import { type Mark, type MarkDocument, marksName } from "./entries.js";

export interface Marks {
  /** Resolves when the log has everything that was acknowledged before the call. */
  wait(signal?: AbortSignal): Promise<void>;
  /** Confirms marks that the log has passed. */
  confirm(marks: readonly Mark[]): Promise<void>;
}

interface MarkOptions {
  readonly db: Db;
  readonly isSharded: boolean;
  /** In milliseconds. */
  readonly timeout: number;
}

/** Marks of instances that no longer run are removed. In milliseconds. */
const lifetime = 24 * 60 * 60_000;

/** Milliseconds until a mark without a confirmation is followed by another one. */
const markInterval = 500;

/** Milliseconds between reads of an instance that does not fill the log itself. */
const minPoll = 2;
const maxPoll = 50;

export function createMarks({ db, isSharded, timeout }: MarkOptions): Marks {
  const documents: Collection<MarkDocument> = db.collection(marksName);
  const _id = uuid(randomUUID());
  const confirmed = createSignal();
  let count = 0;
  let passed = 0;
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  /**
   * A write that the stream returns after all earlier changes. In a sharded cluster these may be on
   * other shards: after a read of all shards, the driver gives the mark a later cluster time.
   */
  async function mark(): Promise<number> {
    if (isSharded) {
      await readCurrentTime(db, databaseTime);
    }
    const n = ++count;
    const update = [{ $set: { n, expires_at: { $add: ["$$NOW", lifetime] } } }];
    const options = { upsert: true, ...limitsOf(documents) };
    await callDriver(() => documents.updateOne({ _id }, update, options));
    return n;
  }

  async function round(): Promise<void> {
    const deadline = performance.now() + timeout;
    const n = await mark();
    let markedAt = performance.now();
    for (let poll = minPoll; passed < n; poll = Math.min(2 * poll, maxPoll)) {
      await confirmed.wait(poll);
      if (passed < n) {
        const found = await callDriver(() => documents.findOne({ _id }, limitsOf(documents)));
        passed = Math.max(passed, found?.passed ?? 0);
      }
      if (passed < n && performance.now() > deadline) {
        throw new StoreUnavailable("The audit log does not have the latest changes yet.");
      }
      if (passed < n && performance.now() > markedAt + markInterval) {
        // A new primary may have lost the confirmation. A later mark confirms this one, too.
        markedAt = performance.now();
        await mark();
      }
    }
  }

  function start(): Promise<void> {
    const current = round().finally(() => {
      running = undefined;
    });
    running = current;
    return current;
  }

  /** A mark that is already written may be too early, so calls share the next one. */
  function join(): Promise<void> {
    if (!running) {
      return start();
    }
    next ??= running
      .catch(() => {})
      .then(() => {
        next = undefined;
        return start();
      });
    return next;
  }

  const isOwn = (mark: Mark) => mark._id.toString("hex") === _id.toString("hex");

  return {
    async wait(signal) {
      signal?.throwIfAborted();
      await unlessAborted(join(), signal);
    },

    async confirm(marks) {
      const others = new Map<string, Mark>();
      for (const mark of marks) {
        if (isOwn(mark)) {
          passed = Math.max(passed, mark.n);
          confirmed.notify();
        } else {
          others.set(mark._id.toString("hex"), mark);
        }
      }
      if (others.size > 0) {
        const writes = [...others.values()].map(({ _id, n }) => ({
          updateOne: { filter: { _id }, update: { $max: { passed: n } } },
        }));
        const options = { ordered: false, writeConcern: { w: 1 }, ...limitsOf(documents) } as const;
        await callDriver(() => documents.bulkWrite(writes, options));
      }
    },
  };
}

/** Rejects with the reason of the signal when it aborts first. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) {
    return work;
  }
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
  });
  try {
    await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
