/** The entry point of a worker process. */
import type { Worker } from "node:cluster";
import cluster from "node:cluster";
import { readSettings } from "../config/settings.js";
import { waitForStopSignal } from "../lib/stop-signal.js";
import { withTimeout } from "../lib/timeout.js";
import { serve } from "../run-service.js";
import { createLog } from "../telemetry/log.js";
import type { PrimaryMessage, WorkerMessage } from "./worker-process.js";

async function runWorker(worker: Worker): Promise<void> {
  worker.on("disconnect", () => {
    // The primary process was killed. Node would call process.exit, which waits forever for a
    // transaction of LMDB whose callback has not run yet.
    if (!worker.exitedAfterDisconnect) {
      process.kill(process.pid, "SIGKILL");
    }
  });
  const send = (message: WorkerMessage) => worker.send(message);
  try {
    const settings = readSettings();
    const { log, lines } = createLog(settings.logLevel);
    await serve({
      settings,
      log,
      // Only the first worker. It is never replaced before it has sent the key.
      handlesFirstStart: worker.id === 1,
      scrape: createPoolScrape(worker, send),
      runUntilStopped({ address, server, first }) {
        const stop = waitForStopSignal();
        worker.on("message", (message: PrimaryMessage) => {
          if ("request" in message) {
            // On failure the primary uses the previous snapshot.
            server.snapshot().then(
              (snapshot) => send({ snapshot }),
              () => {},
            );
          }
        });
        send({ listening: address, first });
        return stop;
      },
    });
    lines.flush();
  } catch (error) {
    send({ failure: (error as Error).message });
    process.exitCode = 1;
  }
  // The open IPC channel would keep the process alive.
  worker.disconnect();
}

/** Milliseconds to wait for the metrics of all workers. */
const scrapeTimeout = 5_000;

/** Creates a function that requests the metrics of all workers from the primary process. */
function createPoolScrape(
  worker: Worker,
  send: (message: WorkerMessage) => void,
): () => Promise<string> {
  const pending = new Map<number, (text: string) => void>();
  let lastNumber = 0;
  worker.on("message", (message: PrimaryMessage) => {
    if ("scraped" in message) {
      pending.get(message.scraped)?.(message.text);
      pending.delete(message.scraped);
    }
  });
  return () => {
    const number = ++lastNumber;
    const response = new Promise<string>((resolve) => pending.set(number, resolve));
    send({ scrape: number });
    return withTimeout(response, scrapeTimeout, () => {
      pending.delete(number);
      throw new Error("the primary process did not return the metrics in time");
    });
  };
}

if (cluster.worker) {
  runWorker(cluster.worker);
}
