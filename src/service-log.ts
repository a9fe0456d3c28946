import { writeSync } from "node:fs";
import type { AddressInfo } from "node:net";
import type { BootstrapResult } from "./bootstrap.js";
import type { Settings } from "./config/settings.js";
import { formatHostPort } from "./lib/networks.js";
import { createLog, type LineWriter, type ServiceLogger } from "./telemetry/log.js";

/** The log of the main process, about the service rather than single calls. */
export interface ServiceLog {
  readonly log: ServiceLogger;
  readonly lines: LineWriter;
  /**
   * Logs the URL of the service, and that of the metrics if they have a separate port. Then prints links on a terminal,
   * and the first key, so that no other line follows it during startup. A log that is not on a terminal may be stored
   * and is read by programs, so the key then goes to stderr.
   */
  listening(address: AddressInfo, metricsUrl?: string): void;
  /** Prints the first key of a new store when the service is listening, or at the latest when this process exits. */
  keepFirstKey(first: BootstrapResult, address: AddressInfo): void;
  stopping(signal: NodeJS.Signals): void;
  stopped(): void;
}

export function createServiceLog(settings: Settings): ServiceLog {
  const { log, lines } = createLog(settings.logLevel);
  let firstKey: { readonly banner: string; readonly tenantId: string } | undefined;
  if (settings.grantPolicy === "open") {
    log.warn(
      "GRANT_POLICY=open lets callers grant permissions that they do not hold: " +
        "unset it to prevent privilege escalation",
    );
  }

  function showFirstKey(): void {
    if (!firstKey) {
      return;
    }
    const { banner, tenantId } = firstKey;
    firstKey = undefined;
    if (process.stdout.isTTY) {
      lines.write(banner);
      return;
    }
    try {
      writeSync(process.stderr.fd, banner);
    } catch (err) {
      const command = `latchkey bootstrap --tenant ${tenantId}`;
      log.warn({ err }, `the first key could not be printed: create another with \`${command}\``);
    }
  }

  return {
    log,
    lines,
    listening(address, metricsUrl) {
      if (metricsUrl !== undefined) {
        log.info(`metrics at ${metricsUrl}`);
      }
      log.info({ store: settings.store.kind }, `listening at ${serviceUrl(address, settings)}`);
      if (firstKey) {
        showFirstKey();
      } else if (process.stdout.isTTY && log.isLevelEnabled("info")) {
        lines.write(`\n${links(serviceUrl(address, settings), settings)}\n`);
      }
      // Scripts and supervisors wait for this line.
      lines.flush();
    },
    keepFirstKey(first, address) {
      const banner = firstKeyBanner(first, serviceUrl(address, settings), settings);
      firstKey = { banner, tenantId: first.tenantId };
      // Before the listener that writes the buffered lines.
      process.prependOnceListener("exit", showFirstKey);
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

function links(url: string, { hasConsole }: Settings): string {
  return `${hasConsole ? `  Console  ${url}/console\n` : ""}  Docs     ${url}/docs\n`;
}

/** Links, a command to try and, last and in a frame, the first key. */
function firstKeyBanner({ key }: BootstrapResult, url: string, settings: Settings): string {
  const insecure = settings.tls ? " --insecure" : "";
  return `
${links(url, settings)}
  Try it. Paste the key when the first command waits for it:

      read -rs SVC_API_KEY
      curl${insecure} -H "${settings.keyHeader}: $SVC_API_KEY" ${url}/applications/key

${frame("Your first key", [key, "", "It is a management key.", "It is shown only once: store it safely."])}
`;
}

/** Draws a frame around lines, unless the terminal is too narrow for it: lines that wrap could not be copied. */
function frame(title: string, lines: readonly string[]): string {
  const width = Math.max(...lines.map(({ length }) => length));
  const { isTTY, columns } = process.stdout.isTTY ? process.stdout : process.stderr;
  if (isTTY && columns > 0 && columns < width + frameWidth) {
    return [title, "", ...lines].map((line) => (line ? `  ${line}\n` : "\n")).join("");
  }
  const top = `╭─ ${title} ${"─".repeat(width - title.length + 1)}╮`;
  const rows = ["", ...lines, ""].map((line) => `│  ${line.padEnd(width)}  │`);
  const bottom = `╰${"─".repeat(width + 4)}╯`;
  return [top, ...rows, bottom].map((line) => `  ${line}\n`).join("");
}

/** Columns of a frame beside its lines. */
const frameWidth = "  │    │".length;

const command = "node dist/src/main.js bootstrap";

/** Logged while the store has no application. */
export const bootstrapHint = `no application exists yet: create the first key with \`latchkey bootstrap\` (Docker: docker exec CONTAINER ${command}; Compose: docker compose run --rm latchkey-1 bootstrap; Kubernetes: kubectl exec deploy/latchkey -- ${command})`;

/** A URL of the service that works on this machine. */
function serviceUrl({ address, port }: AddressInfo, { tls }: Settings): string {
  const isWildcard = address === "::" || address === "0.0.0.0";
  return `${tls ? "https" : "http"}://${formatHostPort(isWildcard ? "localhost" : address, port)}`;
}
