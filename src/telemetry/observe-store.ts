import { Problem } from "../errors.js";
import {
  AlreadyApplied,
  CallerChanged,
  LastManager,
  SessionQuotaReached,
  StoreUnavailable,
} from "../store/port/errors.js";
import type { Store } from "../store/port/store.js";
import type { Tracing } from "./tracing.js";

/** `refused`: a precondition on the stored data failed. */
export type StoreOutcome = "ok" | "unavailable" | "refused" | "error";

/** Records a completed store call. */
export type RecordStoreCall = (outcome: StoreOutcome, milliseconds: number) => void;

interface StoreObservers {
  /** Returns the counter of an operation. */
  readonly counterOf?: ((operation: string) => RecordStoreCall) | undefined;
  readonly tracing?: Tracing | undefined;
}

/** Any store method; none has more than four parameters. Rest parameters would cost more. */
type Operation = (one?: unknown, two?: unknown, three?: unknown, four?: unknown) => unknown;

/** Wraps a store so that its calls are counted, and asynchronous ones traced. */
export function observeStore(store: Store, { counterOf, tracing }: StoreObservers): Store {
  if (!counterOf && !tracing) {
    return store;
  }

  function observeCall(operation: string, call: Operation): Operation {
    const count = counterOf?.(operation);
    return (one, two, three, four) => {
      const started = performance.now();
      let result: unknown;
      try {
        result = call(one, two, three, four);
      } catch (error) {
        count?.(outcomeOf(error), performance.now() - started);
        throw error;
      }
      if (!(result instanceof Promise)) {
        count?.("ok", performance.now() - started);
        return result;
      }
      const endSpan = tracing?.beginStoreCall(operation, started);
      const end = (outcome: StoreOutcome) => {
        count?.(outcome, performance.now() - started);
        endSpan?.(outcome === "ok" || outcome === "refused" ? undefined : outcome);
      };
      return result.then(
        (value) => {
          end("ok");
          return value;
        },
        (error) => {
          end(outcomeOf(error));
          throw error;
        },
      );
    };
  }

  /** Skips `follow`, which lasts as long as its reader. */
  function observeAll<T extends object>(part: string, methods: T): T {
    const observed = Object.entries(methods).map(([name, method]) => [
      name,
      name === "follow" ? method : observeCall(`${part}.${name}`, method.bind(methods)),
    ]);
    return Object.fromEntries(observed);
  }

  return {
    ...store,
    applications: observeAll("applications", store.applications),
    sessions: observeAll("sessions", store.sessions),
    events: observeAll("events", store.events),
    responses: observeAll("responses", store.responses),
    now: observeCall("now", store.now) as Store["now"],
    ping: observeCall("ping", store.ping) as Store["ping"],
  };
}

function outcomeOf(error: unknown): StoreOutcome {
  if (error instanceof StoreUnavailable) {
    return "unavailable";
  }
  const refusals = [Problem, AlreadyApplied, CallerChanged, LastManager, SessionQuotaReached];
  return refusals.some((refusal) => error instanceof refusal) ? "refused" : "error";
}
