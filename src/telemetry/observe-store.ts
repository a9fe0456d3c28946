import { Problem } from "../errors.js";
import {
  AnswerKept,
  CallerChanged,
  LastManager,
  SessionQuotaReached,
  StoreUnavailable,
} from "../store/port/errors.js";
import type { Store } from "../store/port/store.js";
import type { Tracing } from "./tracing.js";

/** How a call of the store ends: `refused` is that what was to be changed is not as it must be. */
export type StoreOutcome = "ok" | "unavailable" | "refused" | "error";

/** Is told of each call of an operation that has ended, and how many milliseconds it took. */
export type RecordStoreCall = (outcome: StoreOutcome, milliseconds: number) => void;

/** Those who want to know of calls of the store. */
interface StoreObservers {
  /** Answers what counts the calls of an operation. */
  readonly counterOf?: ((operation: string) => RecordStoreCall) | undefined;
  readonly tracing?: Tracing | undefined;
}

/** Any call of a store; none takes more than this. */
type Operation = (one?: unknown, two?: unknown, three?: unknown, four?: unknown) => unknown;

/** The same store, with its calls counted and those that take their time made spans of. */
export function observeStore(store: Store, { counterOf, tracing }: StoreObservers): Store {
  if (!counterOf && !tracing) {
    return store;
  }

  function observeCall(operation: string, call: Operation): Operation {
    const count = counterOf?.(operation);
    return (one, two, three, four) => {
      const started = performance.now();
      let answer: unknown;
      try {
        answer = call(one, two, three, four);
      } catch (error) {
        count?.(outcomeOf(error), performance.now() - started);
        throw error;
      }
      if (!(answer instanceof Promise)) {
        count?.("ok", performance.now() - started);
        return answer;
      }
      const endSpan = tracing?.beginStoreCall(operation, started);
      const end = (outcome: StoreOutcome) => {
        count?.(outcome, performance.now() - started);
        endSpan?.(outcome === "ok" || outcome === "refused" ? undefined : outcome);
      };
      return answer.then(
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

  /** All but what is followed, which lasts for as long as its follower likes. */
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
    answers: observeAll("answers", store.answers),
    now: observeCall("now", store.now) as Store["now"],
    ping: observeCall("ping", store.ping) as Store["ping"],
  };
}

function outcomeOf(error: unknown): StoreOutcome {
  if (error instanceof StoreUnavailable) {
    return "unavailable";
  }
  const refusals = [Problem, AnswerKept, CallerChanged, LastManager, SessionQuotaReached];
  return refusals.some((refusal) => error instanceof refusal) ? "refused" : "error";
}
