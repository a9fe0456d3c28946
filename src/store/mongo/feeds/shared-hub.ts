import { MongoServerError } from "mongodb";
import { createSignal, type Signal } from "../../../lib/concurrency.js";
import { StoreUnavailable } from "../../port/errors.js";

/** Publishes from one change stream to many followers, and notifies the ones that joined. */
export interface Hub {
  leave(wakeup: Signal): void;
  /** Why it has stopped. */
  readonly failure: Error | undefined;
  /** Stops, with an error for the followers. Resolves when all resources are closed. */
  stop(reason?: Error): Promise<void>;
}

/** The reference-counted hub of a store. It runs while it has followers. */
interface SharedHub<H, P> {
  /** Starts the hub if it is not running, from a position if possible. */
  acquire(after: P): Lease<H>;
  /** Stops the hub and ends all subscriptions. */
  close(): Promise<void>;
}

interface Lease<H> {
  readonly hub: Promise<H>;
  /** Stops the hub if this was the last lease. Idempotent. */
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

  function startRun(after: P): Run<H> {
    const run: Run<H> = { starting: start(after), leases: 0 };
    run.starting.then(
      (hub) => {
        run.hub = hub;
      },
      () => abandon(run),
    );
    return run;
  }

  /** The next follower starts a new hub. */
  function abandon(run: Run<H>) {
    current = current === run ? undefined : current;
  }

  function stop(run: Run<H>, reason?: Error) {
    abandon(run);
    const stopped = run.starting
      .then((hub) => hub.stop(reason))
      // Followers already got the error of a failed start.
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
        current = startRun(after);
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

/** Holds a lease on the hub during a subscription. `read` joins the hub with the wakeup, and yields batches. */
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
  // Immediately on abort, even if the consumer never requests the next batch.
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

/** The server may end a stream, for example when it fell behind the oplog. A new subscription then succeeds. */
export function toFailure(error: unknown, what: "changes" | "events"): Error {
  return error instanceof MongoServerError
    ? new StoreUnavailable(`MongoDB has stopped the stream of ${what}.`, { cause: error })
    : (error as Error);
}
