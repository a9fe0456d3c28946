import { Problem } from "../errors.js";
import {
  AlreadyApplied,
  CallerChanged,
  LastManager,
  SessionQuotaReached,
  StoreUnavailable,
} from "../store/port/errors.js";
import type { Store } from "../store/port/store.js";
import { counter, createHistogram, type Family, histogram } from "./metrics/families.js";
import type { Tracing } from "./tracing.js";

/** `refused`: a precondition on the stored data failed. */
type StoreOutcome = "ok" | "unavailable" | "refused" | "error";

type RecordStoreCall = (outcome: StoreOutcome, milliseconds: number) => void;

interface StoreObservers {
  /** Returns the counter of an operation. */
  readonly counterOf?: ((operation: string) => RecordStoreCall) | undefined;
  readonly tracing?: Tracing | undefined;
}

/** Any store method; none has more than four parameters. Rest parameters would be slower. */
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

export interface StoreMetrics {
  counterOf(operation: string): RecordStoreCall;
  families(): Family[];
}

const callsTotal = "latchkey_store_calls_total";
const callDuration = "latchkey_store_call_duration_seconds";

export function createStoreMetrics(): StoreMetrics {
  const all: ReturnType<typeof createOperationCounts>[] = [];

  return {
    counterOf(operation) {
      const counts = createOperationCounts(operation);
      all.push(counts);
      return counts.end;
    },
    families: () => [
      counter(
        callsTotal,
        "Store calls by operation and outcome: ok, unavailable, refused (a precondition failed) or error.",
        all.flatMap((counts) => counts.calls()),
      ),
      histogram(
        callDuration,
        "Duration of store calls by operation.",
        all.flatMap((counts) => counts.durations()),
      ),
    ],
  };
}

function createOperationCounts(operation: string) {
  const durations = createHistogram();
  const completed: Record<StoreOutcome, number> = { ok: 0, unavailable: 0, refused: 0, error: 0 };
  const wasCalled = () => Object.values(completed).some((count) => count > 0);

  return {
    end(outcome: StoreOutcome, milliseconds: number) {
      completed[outcome]++;
      durations.observe(milliseconds);
    },
    calls: () =>
      wasCalled()
        ? Object.entries(completed).map(([outcome, value]) => ({
            labels: { operation, outcome },
            value,
          }))
        : [],
    durations: () => (wasCalled() ? durations.values(callDuration, { operation }) : []),
  };
}

export interface SessionMetrics {
  /** Wraps the store to count opened and authorized sessions. */
  observe(store: Store): Store;
  /** Adds the sessions that expired since the last call. Never fails: a failed count is included in the next one. */
  countExpired(): Promise<void>;
  families(): Family[];
}

export function createSessionMetrics(): SessionMetrics {
  const counts = { opened: 0, authorized: 0, expired: 0 };
  let observed: Store | undefined;

  return {
    observe(store) {
      observed = store;
      return {
        ...store,
        sessions: {
          ...store.sessions,
          async create(session, audit) {
            const created = await store.sessions.create(session, audit);
            counts.opened += created ? 1 : 0;
            return created;
          },
          async authorize(grant, audit) {
            const outcome = await store.sessions.authorize(grant, audit);
            counts.authorized += outcome === "authorized" ? 1 : 0;
            return outcome;
          },
        },
      };
    },

    async countExpired() {
      try {
        const expired = (await observed?.sessions.takeExpired()) ?? 0;
        counts.expired += expired;
      } catch {}
    },

    families: () => [
      counter(
        "latchkey_sessions_total",
        "Sessions by state: opened, authorized or expired. Deleted and revoked sessions do not count as expired.",
        Object.entries(counts).map(([state, value]) => ({ labels: { state }, value })),
      ),
    ],
  };
}
