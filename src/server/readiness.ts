import { once } from "node:events";
import type { Store } from "../store/store.js";

/** Whether the server can do its work now. */
export interface Readiness {
  /** Asks the store. */
  check(): Promise<boolean>;

  /** The state now, and again each time that it changes, until the server stops. */
  watch(signal: AbortSignal): AsyncIterable<boolean>;

  /** Resolves when the server stops, or the signal is given. */
  end(signal: AbortSignal): Promise<void>;
}

const pollInterval = 1_000;

/** How long an answer of the store is good for, so that nobody can make it work by asking. */
const lifetime = 500;

/** Creates a readiness that ends for good when the server is `stopping`. */
export function createReadiness(store: Store, stopping: AbortSignal): Readiness {
  let asked: Promise<boolean> | undefined;

  function ask(): Promise<boolean> {
    asked ??= store
      .ping()
      .then(
        () => true,
        () => false,
      )
      .finally(() => setTimeout(() => (asked = undefined), lifetime).unref());
    return asked;
  }

  async function check(): Promise<boolean> {
    return !stopping.aborted && (await ask()) && !stopping.aborted;
  }

  return {
    check,
    async *watch(signal) {
      const ends = AbortSignal.any([signal, stopping]);
      let last: boolean | undefined;
      while (!signal.aborted) {
        const state = await check();
        if (state !== last) {
          yield state;
          last = state;
        }
        if (ends.aborted) {
          return;
        }
        await pause(pollInterval, ends);
      }
    },
    async end(signal) {
      const ends = AbortSignal.any([signal, stopping]);
      if (!ends.aborted) {
        await once(ends, "abort");
      }
    },
  };
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, milliseconds);
    signal.addEventListener("abort", wake);
  });
}
