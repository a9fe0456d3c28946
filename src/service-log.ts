import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { BootstrapResult } from "./bootstrap.js";
import type { Settings } from "./config/settings.js";
import { createLog, type LineWriter } from "./telemetry/log.js";

/** The log of the main process, about the service rather than single calls. */
export interface ServiceLog {
  readonly log: Logger;
  readonly lines: LineWriter;
  /** Logs the URL of the service, and that of the metrics if they have a separate port. */
  listening(address: AddressInfo, metricsUrl?: string): void;
  stopping(signal: NodeJS.Signals): void;
  stopped(): void;
}

export function createServiceLog(settings: Settings): ServiceLog {
  const { log, lines } = createLog(settings.logLevel);
  if (settings.grantPolicy === "open") {
    log.warn(
      "GRANT_POLICY=open lets callers grant permissions that they do not hold: " +
        "unset it to prevent privilege escalation",
    );
  }
  return {
    log,
    lines,
    listening(address, metricsUrl) {
      if (metricsUrl !== undefined) {
        log.info(`metrics at ${metricsUrl}`);
      }
      log.info({ store: settings.store.kind }, `listening at ${serviceUrl(address, settings)}`);
      // Scripts and supervisors wait for this line.
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

/** The banner of the first start: the URL, the first key and a command to try. */
export function firstKeyBanner(
  { key, tenantId }: BootstrapResult,
  address: AddressInfo,
  settings: Settings,
): string {
  const url = serviceUrl(address, settings);
  const insecure = settings.tls ? " --insecure" : "";
  const console = settings.hasConsole ? `\n  Or sign in to the console: ${url}/console\n` : "";
  return `
  Latchkey is ready at ${url}

  First start: created a management key for tenant ${tenantId}.
  It is shown only once. Store it safely.

      ${key}

  Try it:

      curl${insecure} -H '${settings.keyHeader}: ${key}' ${url}/applications/key
${console}
`;
}

const command = "node dist/src/main.js bootstrap";

/** Logged while the store has no application. */
export const bootstrapHint = `no application exists yet: create the first key with \`latchkey bootstrap\` (Docker: docker exec CONTAINER ${command}; Compose: docker compose run --rm latchkey-1 bootstrap; Kubernetes: kubectl exec deploy/latchkey -- ${command})`;

/** A URL of the service that works on this machine. */
function serviceUrl({ address, family, port }: AddressInfo, { tls }: Settings): string {
  const isWildcard = address === "::" || address === "0.0.0.0";
  const host = family === "IPv6" ? `[${address}]` : address;
  return `${tls ? "https" : "http"}://${isWildcard ? "localhost" : host}:${port}`;
}
