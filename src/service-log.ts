import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { urlOf } from "./banner.js";
import type { Settings } from "./config.js";
import type { LineWriter } from "./line-writer.js";
import { createLog } from "./log.js";

/** The log of the process that was started, which tells of the service as a whole. */
export interface ServiceLog {
  readonly log: Logger;
  /** Where its lines go. */
  readonly lines: LineWriter;
  /** Tells where it is, and where its metrics are if they have a place of their own. */
  listening(address: AddressInfo, metricsUrl?: string): void;
  stopping(signal: NodeJS.Signals): void;
  stopped(): void;
}

export function createServiceLog(settings: Settings): ServiceLog {
  const { log, lines } = createLog(settings.logLevel);
  if (settings.grantPolicy === "open") {
    log.warn(
      "GRANT_POLICY=open lets callers give permissions that they do not hold themselves: " +
        "unset it to turn the rules against escalation on",
    );
  }
  return {
    log,
    lines,
    listening(address, metricsUrl) {
      if (metricsUrl !== undefined) {
        log.info(`metrics at ${metricsUrl}`);
      }
      log.info({ store: settings.store.kind }, `listening at ${urlOf(address, settings)}`);
      // Others wait for this line.
      lines.flush();
    },
    stopping(signal) {
      log.info(`stopping on ${signal}`);
    },
    stopped() {
      log.info("stopped");
      lines.flush();
    },
  };
}
