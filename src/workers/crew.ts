import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import { backOff } from "./back-off.js";
import { createCrewMetrics } from "./crew-metrics.js";
import { startWorker, type WorkerProcess } from "./worker-process.js";

interface Replacing {
  readonly log: Logger;
  /** Called with where a worker listens that has replaced another. */
  readonly onReplaced: (address: AddressInfo) => void;
}

/** The workers of a service. */
export interface Crew {
  /** Resolves when all listen, and rejects where one ends before that. */
  readonly listening: Promise<AddressInfo>;
  /** What all of them have counted, as Prometheus reads it. */
  scrape(): Promise<string>;
  /** Replaces each that dies from now on. */
  keepComplete(options: Replacing): void;
  /** Resolves when all have ended. None may take longer than `patience` milliseconds. */
  stop(patience: number): Promise<void>;
}

export function startCrew(size: number, onOutput: (output: Readable) => void): Crew {
  const running = new Set<WorkerProcess>();
  const metrics = createCrewMetrics();
  const stopping = new AbortController();

  function start(): WorkerProcess {
    const worker = startWorker();
    onOutput(worker.output);
    running.add(worker);
    metrics.add(worker);
    worker.ended.then(() => running.delete(worker));
    return worker;
  }

  async function keepReplacing(first: WorkerProcess, { log, onReplaced }: Replacing) {
    let worker = first;
    // The first ones are as old as this process.
    let startedAt = 0;
    let wait: number | undefined;
    for (;;) {
      const reason = await worker.ended;
      if (stopping.signal.aborted) {
        return;
      }
      wait = backOff(performance.now() - startedAt, wait);
      log.error({ worker_pid: worker.pid }, `${reason}: starting another in ${wait} ms`);
      await delay(wait, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) {
        return;
      }
      startedAt = performance.now();
      worker = start();
      metrics.replaced();
      worker.listening.then(onReplaced, () => {});
    }
  }

  const first = Array.from({ length: size }, start);
  const listening = Promise.all(first.map((worker) => worker.listening)).then(
    ([address]) => address as AddressInfo,
  );
  // It may be known before anyone asks.
  listening.catch(() => {});

  return {
    listening,
    scrape: metrics.scrape,
    keepComplete(options) {
      for (const worker of first) {
        keepReplacing(worker, options);
      }
    },
    async stop(patience) {
      stopping.abort();
      const left = [...running];
      for (const worker of left) {
        worker.stop(patience);
      }
      await Promise.all(left.map(({ ended }) => ended));
    },
  };
}
