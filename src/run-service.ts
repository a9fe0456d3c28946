import type { AddressInfo } from "node:net";
import { createKeyring } from "./auth/keys.js";
import { type BootstrapResult, bootstrap } from "./bootstrap.js";
import type { Settings } from "./config/settings.js";
import { explainListenError } from "./lib/listen-error.js";
import { waitForStopSignal } from "./lib/stop-signal.js";
import { withTimeout } from "./lib/timeout.js";
import { createServer, type LatchkeyServer } from "./server.js";
import { bootstrapHint, createServiceLog } from "./service-log.js";
import { openStore } from "./store/open-store.js";
import type { Store } from "./store/port/store.js";
import { loadTracing } from "./telemetry/load-tracing.js";
import type { ServiceLogger } from "./telemetry/log.js";
import { startMetricsServer } from "./telemetry/metrics/server.js";

/** Milliseconds to wait for the store to close, and then before the process exits anyway. */
const storeCloseTimeout = 1_000;
const exitDelay = 200;

interface ServeOptions {
  readonly settings: Settings;
  readonly log: ServiceLogger;
  /** Whether this process creates the first key or logs the bootstrap hint. */
  readonly handlesFirstStart: boolean;
  /** Returns the metrics of all workers. Absent if there is only this process. */
  readonly scrape?: () => Promise<string>;
  /** Called when the service listens. The service stops when the promise resolves. */
  readonly runUntilStopped: (started: StartedService) => Promise<unknown>;
}

interface StartedService {
  readonly address: AddressInfo;
  readonly server: LatchkeyServer;
  /** The first key of a new store. */
  readonly first: BootstrapResult | undefined;
}

/** Runs the server in this process. */
export async function serve(options: ServeOptions): Promise<void> {
  const store = await openStore(options.settings);
  try {
    await serveFrom(store, options);
  } finally {
    await closeStore(store);
  }
}

/** An unreachable store may never close, and its sockets would keep the process alive. */
async function closeStore(store: Store): Promise<void> {
  const closed = store.close().then(() => true);
  if (!(await withTimeout(closed, storeCloseTimeout, () => false, { keepsRunning: true }))) {
    setTimeout(() => process.exit(), exitDelay).unref();
  }
}

async function serveFrom(store: Store, options: ServeOptions): Promise<void> {
  const { settings, log, handlesFirstStart, scrape, runUntilStopped } = options;
  const tracing = await loadTracing(settings.store.kind);
  const server = createServer({ store, settings, log, tracing, scrape });
  const address = await server.listen().catch((error: NodeJS.ErrnoException) => {
    const names = { host: "HOST", port: "PORT" };
    throw explainListenError(error, { ...settings, names });
  });
  try {
    const isFirstStart = handlesFirstStart && (await isEmpty(store));
    const first = isFirstStart ? await handleFirstStart(store, options) : undefined;
    await runUntilStopped({ address, server, first });
  } finally {
    await server.close();
  }
}

/** An unreachable store does not count as empty. */
function isEmpty({ applications }: Store): Promise<boolean> {
  return applications.isEmpty().catch(() => false);
}

/** With an embedded store, creates the first key. Otherwise logs how to create it. */
async function handleFirstStart(
  store: Store,
  { settings, log }: ServeOptions,
): Promise<BootstrapResult | undefined> {
  if (settings.printsFirstKey && settings.store.kind === "embedded") {
    return bootstrap({ store, keyring: createKeyring(settings.peppers) });
  }
  log.info(bootstrapHint);
  return undefined;
}

/** Runs the service in this process alone until a stop signal arrives. */
export async function serveStandalone(settings: Settings): Promise<void> {
  const { log, keepFirstKey, listening, stopping, stopped } = createServiceLog(settings);
  await serve({
    settings,
    log,
    handlesFirstStart: true,
    async runUntilStopped({ address, server, first }) {
      // Before the log line: a script that waits for it may send the signal immediately.
      const stop = waitForStopSignal();
      if (first) {
        keepFirstKey(first, address);
      }
      const metricsServer = await startMetricsServer(settings.metrics, server.scrape);
      listening(address, metricsServer?.url);
      stopping(await stop);
      await metricsServer?.close();
    },
  });
  stopped();
}
