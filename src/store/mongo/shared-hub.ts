import { StoreUnavailable } from "../store.js";

/** Tells many what one reads. */
export interface Hub {
  /** Why it tells no more. */
  readonly failure: Error | undefined;
  /** Tells no more, for a reason that followers are told. Resolves when nothing is held open. */
  stop(reason?: Error): Promise<void>;
}

/** The one hub of a store, which runs while somebody follows. */
export interface SharedHub<H, P> {
  /** Starts the hub where it does not run, from a position if it can. */
  borrow(after: P): Loan<H>;
  /** Stops the hub, which ends all who follow, and lends it no more. */
  close(): Promise<void>;
}

export interface Loan<H> {
  readonly hub: Promise<H>;
  /** Stops the hub if no other has it; again does nothing. */
  release(): void;
}

interface Run<H> {
  readonly starting: Promise<H>;
  hub?: H;
  borrowers: number;
}

export function createSharedHub<H extends Hub, P>(
  start: (after: P) => Promise<H>,
): SharedHub<H, P> {
  const stopping = new Set<Promise<void>>();
  let current: Run<H> | undefined;
  let isClosed = false;

  function begin(after: P): Run<H> {
    const run: Run<H> = { starting: start(after), borrowers: 0 };
    run.starting.then(
      (hub) => {
        run.hub = hub;
      },
      () => abandon(run),
    );
    return run;
  }

  /** Whoever comes next starts anew. */
  function abandon(run: Run<H>) {
    current = current === run ? undefined : current;
  }

  function stop(run: Run<H>, reason?: Error) {
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

const closed = () => new StoreUnavailable("The store is closed.");
