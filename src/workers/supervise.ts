import type { AddressInfo } from "node:net";
import type { Settings } from "../config.js";
import { startMetricsServer } from "../metrics/metrics-server.js";
import { nextTurn } from "../next-turn.js";
import type { ServiceLog } from "../service-log.js";
import { stopSignal } from "../stop-signal.js";
import { startCrew } from "./crew.js";
import { forwardLines } from "./forward-lines.js";

/** Milliseconds that a worker may take to stop beyond the grace of its calls, to close its store. */
const closingTime = 4_000;

/** Has workers serve, which share one port, until this process is told to stop. */
export async function supervise(settings: Settings): Promise<void> {
  const stop = stopSignal();
  // Loaded while the workers start, not before.
  const serviceLog = nextTurn().then(() => loadServiceLog(settings));
  const crew = startCrew(settings.workers, (output) => {
    serviceLog.then(({ lines }) => forwardLines(output, lines));
  });
  try {
    const { log, listening, stopping, stopped } = await serviceLog;
    const address = await Promise.race([crew.listening, stop.then(() => undefined)]);
    const metricsServer = await startMetricsServer(settings.metrics, crew.scrape);
    if (address) {
      listening(address, metricsServer?.url);
      crew.keepComplete({ log, onReplaced: ifElsewhere(address, listening) });
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
