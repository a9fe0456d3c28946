import { once } from "node:events";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { Problem } from "../../errors.js";
import type { Store } from "../../store/port/store.js";

/** The standard gRPC health service, for the server as a whole (empty name) and for its services. */
export function createHealthHandlers(
  readiness: Readiness,
  serviceNames: readonly string[],
): ServiceImpl<typeof Health> {
  const isKnown = (name: string) => name === "" || serviceNames.includes(name);
  const statusOf = (isReady: boolean) => (isReady ? Status.SERVING : Status.NOT_SERVING);
  return {
    async check({ service }) {
      if (!isKnown(service)) {
        throw new Problem("service_not_found", "There is no such service here.");
      }
      return { status: statusOf(await readiness.check()) };
    },

    async *watch({ service }, { signal }) {
      if (!isKnown(service)) {
        yield { status: Status.SERVICE_UNKNOWN };
        await readiness.end(signal);
        return;
      }
      for await (const isReady of readiness.watch(signal)) {
        yield { status: statusOf(isReady) };
      }
    },
  };
}

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
