import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Bootstrapped } from "./bootstrap.js";
import type { Settings } from "./config/settings.js";
import { createLog, type LineWriter } from "./telemetry/log.js";

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
      log.info({ store: settings.store.kind }, `listening at ${serviceUrl(address, settings)}`);
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

/** What a newcomer sees: where the service is, the first key, and a line to paste. */
export function firstKeyBanner(
  { key, tenantId }: Bootstrapped,
  address: AddressInfo,
  settings: Settings,
): string {
  const url = serviceUrl(address, settings);
  const insecure = settings.tls ? " --insecure" : "";
  const orLook = settings.hasConsole ? `\n  Or sign in with it at ${url}/console\n` : "";
  return `
  Latchkey is ready at ${url}

  This is the first run, so here is a key that manages tenant ${tenantId}.
  It is shown only now and kept nowhere: store it safely.

      ${key}

  Try it:

      curl${insecure} -H '${settings.keyHeader}: ${key}' ${url}/applications/key
${orLook}
`;
}

const command = "node dist/src/main.js bootstrap";

/** What an operator is told while there is no key at all. */
export const bootstrapHint = `there is no application yet: create the first key with \`latchkey bootstrap\` (Docker: docker exec CONTAINER ${command}; Compose: docker compose run --rm latchkey-1 bootstrap; Kubernetes: kubectl exec deploy/latchkey -- ${command})`;

/** An address of the server that works on this machine. */
export function serviceUrl({ address, family, port }: AddressInfo, { tls }: Settings): string {
  const isWildcard = address === "::" || address === "0.0.0.0";
  const host = family === "IPv6" ? `[${address}]` : address;
  return `${tls ? "https" : "http"}://${isWildcard ? "localhost" : host}:${port}`;
}
