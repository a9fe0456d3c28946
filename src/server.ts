import { setMaxListeners } from "node:events";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import type { Uses } from "./auth/last-used.js";
import { type DependencyOptions, createDependencies } from "./dependencies.js";
import { createHandlers } from "./handlers.js";
import { withTimeout } from "./lib/timeout.js";
import type { Denials } from "./services/events/denials.js";
import { createExpiryWarnings, type ExpiryWarnings } from "./services/events/expiry-warnings.js";
import { type Snapshot, formatMetrics } from "./telemetry/metrics/families.js";
import { createMetrics } from "./telemetry/metrics/metrics.js";
import { shareScrapes } from "./telemetry/metrics/server.js";
import { createFront } from "./transport/dispatcher.js";
import { createCors } from "./transport/http/cors.js";
import { createListener } from "./transport/listener/listener.js";
import { createFollowTls } from "./transport/listener/tls-reload.js";
import { pageAt } from "./transport/system/endpoints.js";
import { createReadiness } from "./transport/system/health.js";

interface ServerOptions extends DependencyOptions {
  /** Tells the metrics of the whole service, where this server is not all of it. */
  readonly scrape?: (() => Promise<string>) | undefined;
}

export interface LatchkeyServer {
  /** Starts to serve, and answers where. */
  listen(): Promise<AddressInfo>;

  /** What was counted so far; nothing where metrics are off. */
  snapshot(): Promise<Snapshot>;

  /** The metrics of the whole service, as Prometheus reads them. */
  scrape(): Promise<Buffer>;

  /** Stops accepting, finishes what is in flight within the grace of the settings. The store stays open. */
  close(): Promise<void>;
}

/** Creates a server that is not started yet. A mistake in the contract throws here. */
export function createServer(options: ServerOptions): LatchkeyServer {
  const { settings, log } = options;
  const { keyHeader, limits, trustedProxies, tls } = settings;
  const metrics = settings.metrics && createMetrics();
  const commons = createDependencies(options, metrics);
  const { store, uses, denials } = commons;
  const warnings = createExpiryWarnings({ events: store.events, log });
  /** Whoever chooses among instances is to know first. */
  const leaving = new AbortController();
  const stopping = new AbortController();
  // Every stream listens for it.
  setMaxListeners(0, leaving.signal, stopping.signal);
  const readiness = createReadiness(store, leaving.signal);

  const snapshot = async () =>
    metrics?.snapshot({
      connections: listener.connections,
      storeConnections: store.connections?.(),
      isReady: readiness.check,
    }) ?? [];
  const tell = options.scrape ?? (async () => formatMetrics([await snapshot()]));
  const scrape = shareScrapes(async () => Buffer.from(await tell()));
  const isShownHere = settings.metrics && settings.metrics.port === undefined;
  const front = createFront({
    cors: createCors(settings.corsOrigins, keyHeader),
    doors: createHandlers(commons, {
      readiness,
      stopping: stopping.signal,
      scrape: isShownHere ? scrape : undefined,
    }),
    log,
    isSecure: tls !== undefined,
    onPage: ({ method, path, status = 0 }) =>
      metrics?.pages.count(method === "OPTIONS" ? "preflight" : pageAt(path), status),
    limits,
    foreignKeys: settings.foreignKeys,
    withoutSecrets: commons.withoutSecrets,
  });
  const listener = createListener({
    onExchange: front,
    limits,
    trustedProxies,
    onRefused(requestId, status) {
      metrics?.pages.count("other", status);
      log.info({ request_id: requestId, status });
    },
    tls: tls && { contents: tls.contents, follow: createFollowTls({ ...tls, log }) },
  });

  return {
    async listen() {
      const address = await listener.listen(settings.port, settings.host);
      warnings.start();
      return address;
    },
    snapshot,
    scrape,
    async close() {
      leaving.abort();
      await listener.refuse();
      stopping.abort();
      await listener.close(settings.shutdownGrace);
      await closeWriters({ uses, denials, warnings, log });
      metrics?.close();
    },
  };
}

interface Writers {
  readonly uses: Uses;
  readonly denials: Denials;
  readonly warnings: ExpiryWarnings;
  readonly log: Logger;
}

/** For how many milliseconds is written what waits. */
const patience = 2_000;

/** Has all write what waits. Where the store does not take it in time, as it may be away, it stays unwritten. */
async function closeWriters({ uses, denials, warnings, log }: Writers): Promise<void> {
  const giveUp = new AbortController();
  const closing = [uses.close(giveUp.signal), denials.close(giveUp.signal), warnings.close()];
  const written = Promise.all(closing).then(() => true);
  if (!(await withTimeout(written, patience, () => false, { keepsRunning: true }))) {
    giveUp.abort();
    log.warn(
      { uses: uses.waiting, denials: denials.pending },
      "the store took too long: not all uses of keys and refused calls are written",
    );
  }
}
