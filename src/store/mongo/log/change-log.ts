/** Keeps the audit log complete: one instance at a time adds the entries of all changes. */
import type { Db } from "mongodb";
import { createSignal } from "../../../lib/concurrency.js";
import { maxTimeOf } from "../driver-call.js";
import type { ResponseDocuments } from "../responses.js";
import { createMarks } from "./marks.js";
import { createLease, logPositionName, type PositionRead } from "./position.js";
import { createProjector, loggedBefore } from "./projector.js";

export interface ChangeLog {
  /** Resolves when the log has the entries of all changes that were acknowledged before the call. */
  wait(signal?: AbortSignal): Promise<void>;
  /** Whether the log is known to have an entry. */
  has(id: string, at: Date): boolean;
  /** Milliseconds that the log is behind, as far as is known. */
  readonly lag: number;
  close(): Promise<void>;
}

interface ChangeLogOptions {
  readonly db: Db;
  readonly isSharded: boolean;
  readonly responses: Pick<ResponseDocuments, "store">;
  readonly warn: (message: string) => void;
}

/** Milliseconds between looks at the lease of another instance, or after a failure. */
const pollInterval = 500;

export function createChangeLog(options: ChangeLogOptions): ChangeLog {
  const { db, isSharded, responses, warn } = options;
  const lease = createLease(db.collection(logPositionName));
  const marks = createMarks({ db, isSharded, timeout: 2 * maxTimeOf(db.client) });
  let known: PositionRead | undefined;
  const onProgress = (position: PositionRead) => {
    known = position;
  };
  const projector = createProjector({ db, lease, marks, responses, warn, onProgress });
  const closing = new AbortController();
  const wakeup = createSignal();

  async function lead(): Promise<void> {
    known = await lease.read();
    const taken = known.isFree ? await lease.take() : undefined;
    if (taken) {
      await projector.run(taken, closing.signal);
    }
  }

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      // The next look shows whether it was temporary.
      await lead().catch(() => {});
      if (!closing.signal.aborted) {
        await wakeup.wait(pollInterval);
      }
    }
    await lease.release().catch(() => {});
  }

  const running = run();

  return {
    wait: marks.wait,
    has: (id, at) => projector.hasAdded(id) || (known !== undefined && at < loggedBefore(known)),
    get lag() {
      // While no instance fills the log, one is about to.
      return known && !known.isFree ? known.lag : 0;
    },

    async close() {
      closing.abort();
      wakeup.notify();
      await running;
    },
  };
}
