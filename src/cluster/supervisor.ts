import type { AddressInfo } from "node:net";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "pino";
import type { Settings } from "../config/settings.js";
import { waitForNextTick } from "../lib/event-loop.js";
import { waitForStopSignal } from "../serve.js";
import type { ServiceLog } from "../service-log.js";
import type { LineWriter } from "../telemetry/log.js";
import { startMetricsServer } from "../telemetry/metrics/server.js";
import { createWorkerPoolMetrics } from "./metrics.js";
import { startWorker, type WorkerProcess } from "./worker-process.js";

/** Milliseconds that a worker may take to stop beyond the grace of its calls, to close its store. */
const closingTime = 4_000;

/** Has workers serve, which share one port, until this process is told to stop. */
export async function supervise(settings: Settings): Promise<void> {
  const stop = waitForStopSignal();
  // Loaded while the workers start, not before.
  const serviceLog = waitForNextTick().then(() => loadServiceLog(settings));
  const crew = startWorkerPool(settings.workers, (output) => {
    serviceLog.then(({ lines }) => forwardLines(output, lines));
  });
  try {
    const { log, listening, stopping, stopped } = await serviceLog;
    const address = await Promise.race([crew.listening, stop.then(() => undefined)]);
    const metricsServer = await startMetricsServer(settings.metrics, crew.scrape);
    if (address) {
      listening(address, metricsServer?.url);
      crew.replaceExited({ log, onReplaced: ifElsewhere(address, listening) });
    }
    stopping(await stop);
    await crew.stop(settings.shutdownGrace + closingTime);
    await metricsServer?.close();
    stopped();
  } catch (error) {
    await crew.stop(closingTime);
    throw error;
  }
}

async function loadServiceLog(settings: Settings): Promise<ServiceLog> {
  const { createServiceLog } = await import("../service-log.js");
  return createServiceLog(settings);
}

/** Where the system chooses the port, it chooses anew when all workers have died at once. */
function ifElsewhere(first: AddressInfo, tell: (address: AddressInfo) => void) {
  let { port } = first;
  return (address: AddressInfo) => {
    if (address.port !== port) {
      port = address.port;
      tell(address);
    }
  };
}

interface ReplaceOptions {
  readonly log: Logger;
  /** Called with where a worker listens that has replaced another. */
  readonly onReplaced: (address: AddressInfo) => void;
}

/** The workers of a service. */
export interface WorkerPool {
  /** Resolves when all listen, and rejects where one ends before that. */
  readonly listening: Promise<AddressInfo>;
  /** What all of them have counted, as Prometheus reads it. */
  scrape(): Promise<string>;
  /** Replaces each that dies from now on. */
  replaceExited(options: ReplaceOptions): void;
  /** Resolves when all have ended. None may take longer than `patience` milliseconds. */
  stop(patience: number): Promise<void>;
}

export function startWorkerPool(size: number, onOutput: (output: Readable) => void): WorkerPool {
  const running = new Set<WorkerProcess>();
  const metrics = createWorkerPoolMetrics();
  const stopping = new AbortController();

  function start(): WorkerProcess {
    const worker = startWorker();
    onOutput(worker.output);
    running.add(worker);
    metrics.add(worker);
    worker.exited.then(() => running.delete(worker));
    return worker;
  }

  async function keepReplacing(first: WorkerProcess, { log, onReplaced }: ReplaceOptions) {
    let worker = first;
    // The first ones are as old as this process.
    let startedAt = 0;
    let wait: number | undefined;
    for (;;) {
      const reason = await worker.exited;
      if (stopping.signal.aborted) {
        return;
      }
      wait = restartDelay(performance.now() - startedAt, wait);
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
    replaceExited(options) {
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
      await Promise.all(left.map(({ exited }) => exited));
    },
  };
}

const shortest = 100;
const longest = 10_000;
/** One that ran for so long was all right, whatever has ended it. */
const soundLifetime = 30_000;

/** Milliseconds to wait before a worker is replaced: longer each time, where they die one after another. */
export function restartDelay(lifetime: number, previous = 0): number {
  const isSound = lifetime >= soundLifetime;
  return isSound ? shortest : Math.min(Math.max(previous * 2, shortest), longest);
}

/** Passes on what a worker writes, in whole lines, so that those of several workers never mix. */
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
