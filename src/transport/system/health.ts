import type { ServiceImpl } from "@connectrpc/connect";
import {
  type Health,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import { Problem } from "../../errors.js";
import type { Store } from "../../store/port/store.js";

/** The standard gRPC health service, for the server (empty name) and for each service. */
export function createHealthHandlers(
  readiness: Readiness,
  serviceNames: readonly string[],
): ServiceImpl<typeof Health> {
  const isServed = (name: string) => name === "" || serviceNames.includes(name);
  const statusOf = (isReady: boolean) => (isReady ? Status.SERVING : Status.NOT_SERVING);
  return {
    async check({ service }) {
      if (!isServed(service)) {
        throw new Problem(
          "service_not_found",
          `Unknown service. Send an empty name, or one of ${serviceNames.join(", ")}.`,
        );
      }
      return { status: statusOf(await readiness.check()) };
    },

    async *watch({ service }, { signal }) {
      if (!isServed(service)) {
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

/** Whether the server is ready to serve requests. */
export interface Readiness {
  /** Pings the store. */
  check(): Promise<boolean>;

  /** Yields the current state and each change, until the server stops. */
  watch(signal: AbortSignal): AsyncIterable<boolean>;

  /** Resolves when the server stops, or the signal aborts. */
  end(signal: AbortSignal): Promise<void>;
}

const pollInterval = 1_000;

/** Milliseconds that a ping result is reused, so that health checks cannot put load on the store. */
const pingLifetime = 500;

/** Creates a readiness check that fails from the moment the server is `stopping`. */
export function createReadiness(store: Store, stopping: AbortSignal): Readiness {
  let pending: Promise<boolean> | undefined;

  function ping(): Promise<boolean> {
    pending ??= store
      .ping()
      .then(
        () => true,
        () => false,
      )
      .finally(() => setTimeout(() => (pending = undefined), pingLifetime).unref());
    return pending;
  }

  async function check(): Promise<boolean> {
    return !stopping.aborted && (await ping()) && !stopping.aborted;
  }

  return {
    check,
    async *watch(signal) {
      let last: boolean | undefined;
      while (!signal.aborted) {
        const state = await check();
        if (state !== last) {
          yield state;
          last = state;
        }
        if (stopping.aborted) {
          return;
        }
        await waitForAbort([signal, stopping], pollInterval);
      }
    },
    end: (signal) => waitForAbort([signal, stopping]),
  };
}

/**
 * Waits until a signal aborts or the time is over. `AbortSignal.any` would leave an entry
 * per call on `stopping`, which lasts as long as the process.
 */
function waitForAbort(signals: readonly AbortSignal[], milliseconds?: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      for (const signal of signals) {
        signal.removeEventListener("abort", finish);
      }
      resolve();
    };
    const timer = milliseconds === undefined ? undefined : setTimeout(finish, milliseconds);
    for (const signal of signals) {
      signal.addEventListener("abort", finish);
    }
    if (signals.some(({ aborted }) => aborted)) {
      finish();
    }
  });
}
