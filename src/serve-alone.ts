import type { Settings } from "./config.js";
import { startMetricsServer } from "./metrics/metrics-server.js";
import { serve } from "./serve.js";
import { createServiceLog } from "./service-log.js";
import { stopSignal } from "./stop-signal.js";

/** Runs the service in this process until it is told to stop. */
export async function serveAlone(settings: Settings): Promise<void> {
  const { log, listening, stopping, stopped } = createServiceLog(settings);
  await serve({
    settings,
    log,
    greets: true,
    async untilStopped(address, server) {
      // Whoever hears that it listens may tell it to stop at once.
      const stop = stopSignal();
      const metricsServer = await startMetricsServer(settings.metrics, server.scrape);
      listening(address, metricsServer?.url);
      stopping(await stop);
      await metricsServer?.close();
    },
  });
  stopped();
}
