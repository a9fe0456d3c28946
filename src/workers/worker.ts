/** What a process does that another one has started to share the work. */
import cluster, { type Worker } from "node:cluster";
import { readSettings } from "../config.js";
import { createLog } from "../log.js";
import { serve } from "../serve.js";
import { stopSignal } from "../stop-signal.js";
import type { Order, Report } from "./report.js";
import { createScrapeAll } from "./scrape-all.js";

async function work(worker: Worker): Promise<void> {
  const tell = (report: Report) => worker.send(report);
  try {
    const settings = readSettings();
    const { log, lines } = createLog(settings.logLevel);
    await serve({
      settings,
      log,
      // One of them greets, and the first one is never replaced before it has.
      greets: worker.id === 1,
      scrape: createScrapeAll(worker, tell),
      untilStopped(address, server) {
        const stop = stopSignal();
        worker.on("message", (order: Order) => {
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

if (cluster.worker) {
  work(cluster.worker);
}
