import type { RecordStoreCall, StoreOutcome } from "../observe-store.js";
import { counter, createHistogram, type Family, histogram } from "./families.js";

export interface StoreMetrics {
  /** Creates what counts the calls of an operation. */
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
        "Calls of the store, by operation and outcome: ok, unavailable, refused by what is stored, or error.",
        all.flatMap((counts) => counts.calls()),
      ),
      histogram(
        duration,
        "How long calls of the store took, by operation.",
        all.flatMap((counts) => counts.durations()),
      ),
    ],
  };
}

function createOperationCounts(operation: string) {
  const took = createHistogram();
  const ended: Record<StoreOutcome, number> = { ok: 0, unavailable: 0, refused: 0, error: 0 };
  const isSeen = () => Object.values(ended).some((count) => count > 0);

  return {
    end(outcome: StoreOutcome, milliseconds: number) {
      ended[outcome]++;
      took.observe(milliseconds);
    },
    calls: () =>
      isSeen()
        ? Object.entries(ended).map(([outcome, value]) => ({
            labels: { operation, outcome },
            value,
          }))
        : [],
    durations: () => (isSeen() ? took.values(duration, { operation }) : []),
  };
}
