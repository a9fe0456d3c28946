import { createSignal, type Signal } from "../../../lib/concurrency.js";
import { StoreUnavailable } from "../../port/errors.js";
import type { Hub } from "./hub.js";

/** The reference-counted hub of a store. It runs while it has followers. */
interface SharedHub {
  /** Starts the hub if it is not running. */
  acquire(): Lease;
  /** Stops the hub and ends all subscriptions. */
  close(): Promise<void>;
}

interface Lease {
  readonly hub: Promise<Hub>;
  /** Stops the hub if this was the last lease. Idempotent. */
  release(): void;
}

interface Run {
  readonly starting: Promise<Hub>;
  hub?: Hub;
  leases: number;
}

export function createSharedHub(start: () => Promise<Hub>): SharedHub {
  const stopping = new Set<Promise<void>>();
  let current: Run | undefined;
  let isClosed = false;

  function startRun(): Run {
    const run: Run = { starting: start(), leases: 0 };
    run.starting.then(
      (hub) => {
        run.hub = hub;
      },
      () => abandon(run),
    );
    return run;
  }

  /** The next follower starts a new hub. */
  function abandon(run: Run) {
    current = current === run ? undefined : current;
  }

  function stop(run: Run, reason?: Error) {
    abandon(run);
    const stopped = run.starting
      .then((hub) => hub.stop(reason))
      // Followers already got the error of a failed start.
      .catch(() => {})
      .finally(() => stopping.delete(stopped));
    stopping.add(stopped);
  }

  return {
    acquire() {
      if (isClosed) {
        throw closed();
      }
      if (!current || current.hub?.failure) {
        current = startRun();
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
export async function* followHub<B>(
  shared: SharedHub,
  signal: AbortSignal,
  read: (hub: Hub, wakeup: Signal) => AsyncIterable<B>,
): AsyncGenerator<B, void, void> {
  if (signal.aborted) {
    return;
  }
  const wakeup = createSignal();
  const lease = shared.acquire();
  let hub: Hub | undefined;
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
