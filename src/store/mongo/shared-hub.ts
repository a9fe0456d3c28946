import { changeRetention, StoreUnavailable } from "../store.js";
import { type ChangeHub, type ChangeSource, startChangeHub } from "./change-hub.js";
import { type Present, readPresent } from "./expiry-scan.js";
import { clusterTimeOfMark, lastOrdinal, markOf, type Position, timestampOf } from "./position.js";

/** The one hub of a store, which runs while somebody follows. */
export interface SharedHub {
  /** Starts the hub where it does not run, from a position if it can. */
  borrow(after: Position | undefined): Loan;
  /** Stops the hub, which ends all who follow, and lends it no more. */
  close(): Promise<void>;
}

export interface Loan {
  readonly hub: Promise<ChangeHub>;
  /** Stops the hub if no other has it; again does nothing. */
  release(): void;
}

interface Run {
  readonly starting: Promise<ChangeHub>;
  hub?: ChangeHub;
  borrowers: number;
}

export function createSharedHub(source: ChangeSource): SharedHub {
  const stopping = new Set<Promise<void>>();
  let current: Run | undefined;
  let isClosed = false;

  function begin(after: Position | undefined): Run {
    const run: Run = { starting: start(source, after), borrowers: 0 };
    run.starting.then(
      (hub) => {
        run.hub = hub;
      },
      () => abandon(run),
    );
    return run;
  }

  /** Whoever comes next starts anew. */
  function abandon(run: Run) {
    current = current === run ? undefined : current;
  }

  function stop(run: Run, reason?: Error) {
    abandon(run);
    const stopped = run.starting
      .then((hub) => hub.stop(reason))
      // One that did not start has told its borrowers why.
      .catch(() => {})
      .finally(() => stopping.delete(stopped));
    stopping.add(stopped);
  }

  return {
    borrow(after) {
      if (isClosed) {
        throw closed();
      }
      if (!current || current.hub?.failure) {
        current = begin(after);
      }
      const run = current;
      let isReleased = false;
      run.borrowers++;
      return {
        hub: run.starting,
        release() {
          if (!isReleased) {
            isReleased = true;
            run.borrowers--;
            if (run.borrowers === 0) {
              stop(run);
            }
          }
        },
      };
    },

    async close() {
      isClosed = true;
      if (current) {
        stop(current, closed());
      }
      await Promise.all(stopping);
    },
  };
}

async function start(source: ChangeSource, after: Position | undefined): Promise<ChangeHub> {
  const present = await readPresent(source.db, source.time);
  if (after && isRecent(after, present)) {
    const past = { ...after, scannedTo: Math.min(after.scannedTo, present.now) };
    try {
      return await startChangeHub(source, past);
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        throw error;
      }
      // The server does not know that position any more.
    }
  }
  const mark = markOf(present.clusterTime, lastOrdinal);
  return startChangeHub(source, { mark, scannedTo: present.now });
}

/** While a database is idle, its cluster time stands still for some seconds. */
const longestStandstill = 60_000;

function isRecent(after: Position, { now, clusterTime }: Present): boolean {
  const markTime = clusterTimeOfMark(after.mark);
  const sinceMark = (timestampOf(clusterTime).t - timestampOf(markTime).t) * 1_000;
  return (
    now - after.scannedTo <= changeRetention &&
    // One that is ahead would keep the changes until then from all who follow.
    markTime <= clusterTime &&
    sinceMark <= changeRetention + longestStandstill
  );
}

const closed = () => new StoreUnavailable("The store is closed.");
