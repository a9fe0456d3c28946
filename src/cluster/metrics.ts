import { withTimeout } from "../lib/timeout.js";
import {
  sumSnapshots,
  counter,
  gauge,
  singleValue,
  type Snapshot,
  formatMetrics,
} from "../telemetry/metrics/families.js";
import { startTime } from "../telemetry/metrics/metrics.js";
import { shareScrapes } from "../telemetry/metrics/server.js";
import type { WorkerProcess } from "./worker-process.js";

/** How long is waited for a worker that does not answer, in milliseconds. */
const patience = 2_000;

/** What all workers of a service have counted. */
export interface WorkerPoolMetrics {
  /** Has a worker tell, and be told, from now on. */
  add(worker: WorkerProcess): void;
  /** Notes that a worker is replaced. */
  replaced(): void;
  /** All of it, as Prometheus reads it. */
  scrape(): Promise<string>;
}

/**
 * What a worker told last is kept: it stands for one that does not answer, and
 * when a worker has ended its counts are added to those of the others for ever.
 * So no count that was told ever becomes less.
 */
export function createWorkerPoolMetrics(): WorkerPoolMetrics {
  const told = new Map<WorkerProcess, Snapshot>();
  const endedCounts: Snapshot[] = [];
  let replacements = 0;

  async function ask(worker: WorkerProcess): Promise<void> {
    const snapshot = await withTimeout(worker.snapshot(), patience, () => undefined);
    if (snapshot && told.has(worker)) {
      told.set(worker, snapshot);
    }
  }

  function keepCounts(worker: WorkerProcess): void {
    const counts = (told.get(worker) ?? []).filter(({ type }) => type !== "gauge");
    told.delete(worker);
    endedCounts.push(counts);
  }

  /** However many have ended, what they counted is kept as one. */
  async function addUpEndedCounts(): Promise<void> {
    const all = [...endedCounts];
    const sum = await sumSnapshots(all);
    endedCounts.splice(0, all.length, sum);
  }

  const scrape = shareScrapes(async () => {
    await Promise.all([...told.keys()].map(ask));
    await addUpEndedCounts();
    return formatMetrics([...told.values(), ...endedCounts, own()]);
  });

  function own(): Snapshot {
    return [
      startTime(),
      gauge("latchkey_workers", "Workers that are running.", singleValue(told.size)),
      counter(
        "latchkey_worker_restarts_total",
        "Workers that have died and were replaced.",
        singleValue(replacements),
      ),
    ];
  }

  return {
    add(worker) {
      worker.onScrape(scrape);
      // Before that it does not listen to us either.
      worker.listening.then(
        () => told.set(worker, []),
        () => {},
      );
      worker.exited.then(() => keepCounts(worker));
    },
    replaced() {
      replacements++;
    },
    scrape,
  };
}
