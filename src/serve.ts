import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { createKeyring } from "./auth/keys.js";
import { bootstrap } from "./bootstrap.js";
import type { Settings } from "./config/settings.js";
import { withTimeout } from "./lib/timeout.js";
import { createServer, type LatchkeyServer } from "./server.js";
import { bootstrapHint, createServiceLog, firstKeyBanner } from "./service-log.js";
import { openStore } from "./store/open-store.js";
import type { Store } from "./store/port/store.js";
import { loadTracing } from "./telemetry/load-tracing.js";
import { explainListenError, startMetricsServer } from "./telemetry/metrics/server.js";

/** How long a store may take to close, and what is left then to end the process, in milliseconds. */
const closingTime = 1_000;
const lastMoment = 200;

interface ServeOptions {
  readonly settings: Settings;
  readonly log: Logger;
  /** Whether it is for this process to greet a newcomer. */
  readonly printsWelcome: boolean;
  /** Tells the metrics of the whole service, where this process is not all of it. */
  readonly scrape?: () => Promise<string>;
  /** Called with where the service is, once it is there. It stops when this resolves. */
  readonly runUntilStopped: (address: AddressInfo, server: LatchkeyServer) => Promise<unknown>;
}

/** Serves in this process. */
export async function serve(options: ServeOptions): Promise<void> {
  const store = await openStore(options.settings);
  try {
    await serveFrom(store, options);
  } finally {
    await leave(store);
  }
}

/** Closes the store. One that is away takes its time, and would keep the process waiting even then. */
async function leave(store: Store): Promise<void> {
  const closed = store.close().then(() => true);
  if (!(await withTimeout(closed, closingTime, () => false, { keepsRunning: true }))) {
    setTimeout(() => process.exit(), lastMoment).unref();
  }
}

async function serveFrom(store: Store, options: ServeOptions): Promise<void> {
  const { settings, log, printsWelcome, scrape, runUntilStopped } = options;
  const tracing = await loadTracing(settings.store.kind);
  const server = createServer({ store, settings, log, tracing, scrape });
  const address = await server.listen().catch((error: NodeJS.ErrnoException) => {
    const names = { host: "HOST", port: "PORT" };
    throw explainListenError(error, { ...settings, names });
  });
  try {
    if (printsWelcome && (await isEmpty(store))) {
      await greet(store, address, options);
    }
    await runUntilStopped(address, server);
  } finally {
    await server.close();
  }
}

/** A store that does not answer now is not taken for an empty one. */
function isEmpty({ applications }: Store): Promise<boolean> {
  return applications.isEmpty().catch(() => false);
}

/** A newcomer with an embedded store is given a key; in production an operator makes it, and is told how. */
async function greet(
  store: Store,
  address: AddressInfo,
  { settings, log }: ServeOptions,
): Promise<void> {
  if (settings.showsFirstKey && settings.store.kind === "embedded") {
    const first = await bootstrap({ store, keyring: createKeyring(settings.peppers) });
    process.stdout.write(firstKeyBanner(first, address, settings));
  } else {
    log.info(bootstrapHint);
  }
}

/** Runs the service in this process until it is told to stop. */
export async function serveAlone(settings: Settings): Promise<void> {
  const { log, listening, stopping, stopped } = createServiceLog(settings);
  await serve({
    settings,
    log,
    printsWelcome: true,
    async runUntilStopped(address, server) {
      // Whoever hears that it listens may tell it to stop at once.
      const stop = waitForStopSignal();
      const metricsServer = await startMetricsServer(settings.metrics, server.scrape);
      listening(address, metricsServer?.url);
      stopping(await stop);
      await metricsServer?.close();
    },
  });
  stopped();
}

/** The first signal to stop. Those that follow, as from a terminal and npm at once, change nothing. */
export function waitForStopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    process.on("SIGTERM", resolve);
    process.on("SIGINT", resolve);
  });
}
