import type { RecordStoreCall, StoreOutcome } from "../observe-store.js";
import { counter, createHistogram, type Family, histogram } from "./families.js";

export interface StoreMetrics {
  /** Creates the counter of an operation. */
  counterOf(operation: string): RecordStoreCall;
  families(): Family[];
}

const calls = "latchkey_store_calls_total";
const duration = "latchkey_store_call_duration_seconds";

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
        calls,
        "Store calls by operation and outcome: ok, unavailable, refused (a precondition failed) or error.",
        all.flatMap((counts) => counts.calls()),
      ),
      histogram(
        duration,
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
    durations: () => (wasCalled() ? durations.values(duration, { operation }) : []),
  };
}
