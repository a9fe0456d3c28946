import { withTimeout } from "../lib/timeout.js";
import {
  counter,
  formatMetrics,
  gauge,
  type Snapshot,
  singleValue,
  sumSnapshots,
} from "../telemetry/metrics/families.js";
import { startTime } from "../telemetry/metrics/process.js";
import { shareScrapes } from "../telemetry/metrics/server.js";
import type { WorkerProcess } from "./worker-process.js";

/** Milliseconds to wait for the metrics of a worker. */
const snapshotTimeout = 2_000;

/** The metrics of all workers. */
interface WorkerPoolMetrics {
  add(worker: WorkerProcess): void;
  replaced(): void;
  /** The sum of all workers in the Prometheus text format. */
  scrape(): Promise<string>;
}

/**
 * Counters must never decrease. The last snapshot of a worker is used while
 * the worker does not respond, and its counters remain after it has exited.
 */
export function createWorkerPoolMetrics(): WorkerPoolMetrics {
  const lastSnapshots = new Map<WorkerProcess, Snapshot>();
  const exitedCounts: Snapshot[] = [];
  let replacements = 0;

  async function update(worker: WorkerProcess): Promise<void> {
    const snapshot = await withTimeout(worker.snapshot(), snapshotTimeout, () => undefined);
    if (snapshot && lastSnapshots.has(worker)) {
      lastSnapshots.set(worker, snapshot);
    }
  }

  function retainCounts(worker: WorkerProcess): void {
    const counts = (lastSnapshots.get(worker) ?? []).filter(({ type }) => type !== "gauge");
    lastSnapshots.delete(worker);
    exitedCounts.push(counts);
  }

  /** Merges the counts of exited workers into one snapshot, so that the list stays short. */
  async function mergeExitedCounts(): Promise<void> {
    const all = [...exitedCounts];
    const sum = await sumSnapshots(all);
    exitedCounts.splice(0, all.length, sum);
  }

  const scrape = shareScrapes(async () => {
    await Promise.all([...lastSnapshots.keys()].map(update));
    await mergeExitedCounts();
    return formatMetrics([...lastSnapshots.values(), ...exitedCounts, poolSnapshot()]);
  });

  function poolSnapshot(): Snapshot {
    return [
      startTime(),
      gauge("latchkey_workers", "Running workers.", singleValue(lastSnapshots.size)),
      counter(
        "latchkey_worker_restarts_total",
        "Workers that exited unexpectedly and were replaced.",
        singleValue(replacements),
      ),
    ];
  }

  return {
    add(worker) {
      worker.onScrape(scrape);
      // A worker handles messages only once it listens.
      worker.listening.then(
        () => lastSnapshots.set(worker, []),
        () => {},
      );
      worker.exited.then(() => retainCounts(worker));
    },
    replaced() {
      replacements++;
    },
    scrape,
  };
}
