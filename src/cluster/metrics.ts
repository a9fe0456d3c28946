import { Counter, Gauge, Registry } from "prom-client";
import { withTimeout } from "../lib/timeout.js";
import { addStartTime } from "../telemetry/metrics/process.js";
import { shareScrapes } from "../telemetry/metrics/server.js";
import { aggregateSnapshots, formatMetrics, type Snapshot } from "../telemetry/metrics/snapshot.js";
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
  const registry = new Registry();
  const registers = [registry];
  addStartTime(registry);
  new Gauge({
    name: "latchkey_workers",
    help: "Running workers.",
    registers,
    collect() {
      this.set(lastSnapshots.size);
    },
  });
  const restarts = new Counter({
    name: "latchkey_worker_restarts_total",
    help: "Workers that exited unexpectedly and were replaced.",
    registers,
  });

  async function update(worker: WorkerProcess): Promise<void> {
    const snapshot = await withTimeout(worker.snapshot(), snapshotTimeout, () => undefined);
    if (snapshot && lastSnapshots.has(worker)) {
      lastSnapshots.set(worker, snapshot);
    }
  }

  function retainCounts(worker: WorkerProcess): void {
    // The library declares an enum, but the type is a text.
    const counts = (lastSnapshots.get(worker) ?? []).filter(({ type }) => `${type}` !== "gauge");
    lastSnapshots.delete(worker);
    exitedCounts.push(counts);
  }

  /** Merges the counts of exited workers into one snapshot, so that the list stays short. */
  async function mergeExitedCounts(): Promise<void> {
    const all = [...exitedCounts];
    const sum = await aggregateSnapshots(all);
    exitedCounts.splice(0, all.length, sum);
  }

  const scrape = shareScrapes(async () => {
    await Promise.all([...lastSnapshots.keys()].map(update));
    await mergeExitedCounts();
    const poolMetrics = await registry.getMetricsAsJSON();
    return formatMetrics([...lastSnapshots.values(), ...exitedCounts, poolMetrics]);
  });

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
    replaced: () => restarts.inc(),
    scrape,
  };
}
