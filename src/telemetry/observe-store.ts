import { Counter, type Registry } from "prom-client";
import { Problem } from "../errors.js";
import { withTimeout } from "../lib/timeout.js";
import { Refusal, StoreUnavailable } from "../store/port/errors.js";
import type { Store } from "../store/port/store.js";
import { createHotCounter, DurationHistogram } from "./metrics/hot-path.js";
import type { Tracing } from "./tracing.js";

type StoreOutcome = "ok" | "unavailable" | "refused" | "error";

type RecordStoreCall = (outcome: StoreOutcome, milliseconds: number) => void;

interface StoreObservers {
  readonly registry?: Registry | undefined;
  readonly tracing?: Tracing | undefined;
}

/** Any store method; none has more than four parameters. Rest parameters would be slower. */
type Operation = (one?: unknown, two?: unknown, three?: unknown, four?: unknown) => unknown;

/** Wraps a store so that its calls are counted, and asynchronous ones traced. */
export function observeStore(store: Store, { registry, tracing }: StoreObservers): Store {
  if (!registry && !tracing) {
    return store;
  }
  const counterOf = registry && createStoreCounters(registry);

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
    change: observeCall("change", store.change as Operation) as Store["change"],
    now: observeCall("now", store.now) as Store["now"],
    ping: observeCall("ping", store.ping) as Store["ping"],
  };
}

function outcomeOf(error: unknown): StoreOutcome {
  if (error instanceof StoreUnavailable) {
    return "unavailable";
  }
  return error instanceof Refusal || error instanceof Problem ? "refused" : "error";
}

/** Returns a function that creates the counter of an operation. */
function createStoreCounters(registry: Registry): (operation: string) => RecordStoreCall {
  const registers = [registry];
  const addCalls = createHotCounter({
    name: "latchkey_store_calls_total",
    help: "Store calls by operation and outcome: ok, unavailable, refused (a precondition failed) or error.",
    labelNames: ["operation", "outcome"],
    registers,
  });
  const durations = new DurationHistogram({
    name: "latchkey_store_call_duration_seconds",
    help: "Duration of store calls by operation.",
    labelNames: ["operation"],
    registers,
  });
  return (operation) => {
    // Operations that are never called have no series.
    let counts: ReturnType<typeof createCounts> | undefined;
    const createCounts = () => ({
      ok: addCalls({ operation, outcome: "ok" }),
      unavailable: addCalls({ operation, outcome: "unavailable" }),
      refused: addCalls({ operation, outcome: "refused" }),
      error: addCalls({ operation, outcome: "error" }),
      duration: durations.add({ operation }),
    });
    return (outcome, milliseconds) => {
      counts ??= createCounts();
      counts[outcome].value++;
      counts.duration.observe(milliseconds);
    };
  };
}

/** Milliseconds that a scrape waits for the store. The scraper waits as long. */
export const storeTimeout = 1_000;

/** Counts a session that was opened or authorized. */
export type CountSession = (state: "opened" | "authorized") => void;

/** Creates the counter of sessions. Expired ones are counted when they are scraped. */
export function createSessionCounter(
  { sessions }: Pick<Store, "sessions">,
  registry: Registry,
): CountSession {
  const counter = new Counter({
    name: "latchkey_sessions_total",
    help: "Sessions by state: opened, authorized or expired. Deleted and revoked sessions do not count as expired.",
    labelNames: ["state"],
    registers: [registry],
    collect: () => withTimeout(countExpired(), storeTimeout, () => undefined),
  });
  for (const state of ["opened", "authorized", "expired"]) {
    counter.inc({ state }, 0);
  }

  /** Adds the sessions that expired since the last scrape. Never fails: a failed count is included in the next one. */
  async function countExpired(): Promise<void> {
    try {
      counter.inc({ state: "expired" }, await sessions.drainExpiredCount());
    } catch {}
  }

  return (state) => counter.inc({ state });
}
