import { MongoServerError } from "mongodb";
import { createSignal, type Signal } from "../../../lib/signal.js";
import { StoreUnavailable } from "../../port/errors.js";

/** Tells many what one reads, and rings the followers of those who joined when there is something to tell. */
export interface Hub {
  leave(wakeup: Signal): void;
  /** Why it tells no more. */
  readonly failure: Error | undefined;
  /** Tells no more, for a reason that followers are told. Resolves when nothing is held open. */
  stop(reason?: Error): Promise<void>;
}

/** The one hub of a store, which runs while somebody follows. */
export interface SharedHub<H, P> {
  /** Starts the hub where it does not run, from a position if it can. */
  acquire(after: P): Lease<H>;
  /** Stops the hub, which ends all who follow, and lends it no more. */
  close(): Promise<void>;
}

export interface Lease<H> {
  readonly hub: Promise<H>;
  /** Stops the hub if no other has it; again does nothing. */
  release(): void;
}

interface Run<H> {
  readonly starting: Promise<H>;
  hub?: H;
  leases: number;
}

export function createSharedHub<H extends Hub, P>(
  start: (after: P) => Promise<H>,
): SharedHub<H, P> {
  const stopping = new Set<Promise<void>>();
  let current: Run<H> | undefined;
  let isClosed = false;

  function begin(after: P): Run<H> {
    const run: Run<H> = { starting: start(after), leases: 0 };
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
      // One that did not start has told its leases why.
      .catch(() => {})
      .finally(() => stopping.delete(stopped));
    stopping.add(stopped);
  }

  return {
    acquire(after) {
      if (isClosed) {
        throw closed();
      }
      if (!current || current.hub?.failure) {
        current = begin(after);
      }
      const run = current;
      let isReleased = false;
      run.leases++;
      return {
        hub: run.starting,
        release() {
          if (!isReleased) {
            isReleased = true;
            run.leases--;
            if (run.leases === 0) {
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

/**
 * Borrows a hub for as long as one follows. `read` joins it, with the wakeup that
 * it is given, and tells what there is to tell.
 */
export async function* followHub<H extends Hub, P, B>(
  shared: SharedHub<H, P>,
  after: P,
  signal: AbortSignal,
  read: (hub: H, wakeup: Signal) => AsyncIterable<B>,
): AsyncGenerator<B, void, void> {
  if (signal.aborted) {
    return;
  }
  const wakeup = createSignal();
  const lease = shared.acquire(after);
  let hub: H | undefined;
  // Also at once where nobody asks for the next batch any more.
  const leave = () => {
    hub?.leave(wakeup);
    lease.release();
    wakeup.notify();
  };
  signal.addEventListener("abort", leave);
  try {
    hub = (await Promise.race([lease.hub, wakeup.wait()])) ?? undefined;
    if (hub && !signal.aborted) {
      yield* read(hub, wakeup);
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

/** Why a hub stops. The server may refuse to go on, as where the stream fell behind its memory; to start anew then helps. */
export function toFailure(error: unknown, told: string): Error {
  return error instanceof MongoServerError
    ? new StoreUnavailable(`MongoDB tells no more ${told} now.`, { cause: error })
    : (error as Error);
}
