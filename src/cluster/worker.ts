import type { Worker } from "node:cluster";
import cluster from "node:cluster";
import { readSettings } from "../config/settings.js";
import { withTimeout } from "../lib/timeout.js";
import { serve, waitForStopSignal } from "../serve.js";
import { createLog } from "../telemetry/log.js";
import type { PrimaryMessage, WorkerMessage } from "./worker-process.js";

/** What a process does that another one has started to share the work. */

async function work(worker: Worker): Promise<void> {
  const tell = (report: WorkerMessage) => worker.send(report);
  try {
    const settings = readSettings();
    const { log, lines } = createLog(settings.logLevel);
    await serve({
      settings,
      log,
      // One of them greets, and the first one is never replaced before it has.
      printsWelcome: worker.id === 1,
      scrape: createPoolScrape(worker, tell),
      runUntilStopped(address, server) {
        const stop = waitForStopSignal();
        worker.on("message", (order: PrimaryMessage) => {
          if ("ask" in order) {
            // Where it fails, what was told last stands.
            server.snapshot().then(
              (snapshot) => tell({ snapshot }),
              () => {},
            );
          }
        });
        tell({ listening: address });
        return stop;
      },
    });
    lines.flush();
  } catch (error) {
    tell({ failure: (error as Error).message });
    process.exitCode = 1;
  }
  // Without this it would go on to wait for words of the other process.
  worker.disconnect();
}

/** How long is waited for what all workers have counted, in milliseconds. */
const patience = 5_000;

/** Creates what asks the process that started this one for what all workers have counted. */
export function createPoolScrape(
  worker: Worker,
  tell: (report: WorkerMessage) => void,
): () => Promise<string> {
  const waiting = new Map<number, (text: string) => void>();
  let last = 0;
  worker.on("message", (order: PrimaryMessage) => {
    if ("scraped" in order) {
      waiting.get(order.scraped)?.(order.text);
      waiting.delete(order.scraped);
    }
  });
  return () => {
    const number = ++last;
    const told = new Promise<string>((resolve) => waiting.set(number, resolve));
    tell({ scrape: number });
    return withTimeout(told, patience, () => {
      waiting.delete(number);
      throw new Error("the process that started the workers does not tell what they counted");
    });
  };
}

if (cluster.worker) {
  work(cluster.worker);
}
