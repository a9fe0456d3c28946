import type { Settings } from "./config.js";
import { serve } from "./serve.js";
import { createServiceLog } from "./service-log.js";
import { stopSignal } from "./stop-signal.js";

/** Runs the service in this process until it is told to stop. */
export async function serveAlone(settings: Settings): Promise<void> {
  const { log, listening, stopping, stopped } = createServiceLog(settings);
  await serve({
    settings,
    log,
    showsFirstKey: true,
    async untilStopped(address) {
      // Whoever hears that it listens may tell it to stop at once.
      const stop = stopSignal();
      listening(address);
      stopping(await stop);
    },
  });
  stopped();
}
