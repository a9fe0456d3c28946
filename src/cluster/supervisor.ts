import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Settings } from "../config/settings.js";
import { waitForNextTick } from "../lib/event-loop.js";
import { waitForStopSignal } from "../lib/stop-signal.js";
import type { ServiceLog } from "../service-log.js";
import type { LineWriter } from "../telemetry/log.js";
import { startMetricsServer } from "../telemetry/metrics/server.js";
import { createWorkerPoolMetrics } from "./metrics.js";
import { startWorker, type WorkerProcess } from "./worker-process.js";

/** Milliseconds that a worker may take to close its store after the shutdown grace period. */
const closeTimeout = 4_000;

/** Runs workers that share one port, until a stop signal arrives. */
export async function supervise(settings: Settings): Promise<void> {
  const stop = waitForStopSignal();
  // Loaded while the workers start, to keep startup short.
  const serviceLog = waitForNextTick().then(() => loadServiceLog(settings));
  const pool = startWorkerPool(settings.workers, async ({ output, firstKey }) => {
    const { lines, keepFirstKey } = await serviceLog;
    forwardLines(output, lines);
    firstKey.then(({ first, address }) => keepFirstKey(first, address));
  });
  try {
    const { log, listening, stopping, stopped } = await serviceLog;
    const address = await Promise.race([pool.listening, stop.then(() => undefined)]);
    const metricsServer = await startMetricsServer(settings.metrics, pool.scrape);
    if (address) {
      listening(address, metricsServer?.url);
      pool.replaceExited({ log, onReplaced: onNewPort(address, listening) });
    }
    stopping(await stop);
    await pool.stop(settings.shutdownGrace + closeTimeout);
    await metricsServer?.close();
    stopped();
  } catch (error) {
    await pool.stop(closeTimeout);
    throw error;
  }
}

async function loadServiceLog(settings: Settings): Promise<ServiceLog> {
  const { createServiceLog } = await import("../service-log.js");
  return createServiceLog(settings);
}

/** With PORT=0 the system assigns a new port if all workers exit at the same time. */
function onNewPort(first: AddressInfo, report: (address: AddressInfo) => void) {
  let { port } = first;
  return (address: AddressInfo) => {
    if (address.port !== port) {
      port = address.port;
      report(address);
    }
  };
}

interface ReplaceOptions {
  readonly log: Logger;
  /** Called with the address of each replacement. */
  readonly onReplaced: (address: AddressInfo) => void;
}

interface WorkerPool {
  /** Resolves when all workers listen. Rejects if one exits before that. */
  readonly listening: Promise<AddressInfo>;
  /** The metrics of all workers in the Prometheus text format. */
  scrape(): Promise<string>;
  /** Replaces workers that exit from now on. */
  replaceExited(options: ReplaceOptions): void;
  /** Resolves when all workers have exited. Kills workers that take longer than `timeout` milliseconds. */
  stop(timeout: number): Promise<void>;
}

function startWorkerPool(size: number, onStart: (worker: WorkerProcess) => void): WorkerPool {
  const running = new Set<WorkerProcess>();
  const metrics = createWorkerPoolMetrics();
  const stopping = new AbortController();

  function start(): WorkerProcess {
    const worker = startWorker();
    onStart(worker);
    running.add(worker);
    metrics.add(worker);
    worker.exited.then(() => running.delete(worker));
    return worker;
  }

  async function keepReplacing(first: WorkerProcess, { log, onReplaced }: ReplaceOptions) {
    let worker = first;
    // The first workers started with this process.
    let startedAt = 0;
    let wait: number | undefined;
    for (;;) {
      const reason = await worker.exited;
      if (stopping.signal.aborted) {
        return;
      }
      wait = restartDelay(performance.now() - startedAt, wait);
      log.error({ worker_pid: worker.pid }, `${reason}: starting a new worker in ${wait} ms`);
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
  // The rejection may happen before the promise is awaited.
  listening.catch(() => {});

  return {
    listening,
    scrape: metrics.scrape,
    replaceExited(options) {
      for (const worker of first) {
        keepReplacing(worker, options);
      }
    },
    async stop(timeout) {
      stopping.abort();
      const remaining = [...running];
      for (const worker of remaining) {
        worker.stop(timeout);
      }
      await Promise.all(remaining.map(({ exited }) => exited));
    },
  };
}

const minDelay = 100;
const maxDelay = 10_000;
/** A worker that ran this long counts as healthy and resets the backoff. */
const healthyLifetime = 30_000;

/** Milliseconds before a worker is replaced, with exponential backoff while workers exit early. */
export function restartDelay(lifetime: number, previous = 0): number {
  const wasHealthy = lifetime >= healthyLifetime;
  return wasHealthy ? minDelay : Math.min(Math.max(previous * 2, minDelay), maxDelay);
}

/** Forwards the output of a worker line by line, so that lines of several workers never interleave. */
export function forwardLines(from: Readable, to: LineWriter): void {
  let rest = "";
  from.setEncoding("utf8");
  from.on("data", (text: string) => {
    const end = text.lastIndexOf("\n") + 1;
    if (end > 0) {
      to.write(rest + text.slice(0, end));
      rest = "";
    }
    rest += text.slice(end);
  });
  from.on("end", () => {
    if (rest !== "") {
      to.write(`${rest}\n`);
    }
  });
}
