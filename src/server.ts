import { setMaxListeners } from "node:events";
import type { AddressInfo } from "node:net";
import type { LastUsedTracker } from "./auth/last-used.js";
import { createDependencies, type DependencyOptions } from "./dependencies.js";
import { createResponseBudget } from "./lib/response-budget.js";
import { withTimeout } from "./lib/timeout.js";
import { createHandlers } from "./request-handlers.js";
import type { Denials } from "./services/events/denials.js";
import { createExpiryWarnings, type ExpiryWarnings } from "./services/events/expiry-warnings.js";
import type { ServiceLogger } from "./telemetry/log.js";
import { createMetrics } from "./telemetry/metrics/metrics.js";
import { shareScrapes } from "./telemetry/metrics/server.js";
import { formatMetrics, type Snapshot } from "./telemetry/metrics/snapshot.js";
import { createDispatcher } from "./transport/dispatcher.js";
import { createCors } from "./transport/http/cors.js";
import { createListener } from "./transport/listener/listener.js";
import { createTlsReloader } from "./transport/listener/tls-reload.js";
import { endpointLabel } from "./transport/system/endpoints.js";
import { createReadiness } from "./transport/system/health.js";

interface ServerOptions extends Omit<DependencyOptions, "stopping"> {
  /** Returns the metrics of all workers. Absent if there is only this process. */
  readonly scrape?: (() => Promise<string>) | undefined;
}

export interface LatchkeyServer {
  /** Starts listening and returns the address. */
  listen(): Promise<AddressInfo>;

  /** The metrics of this process; empty if metrics are off. */
  snapshot(): Promise<Snapshot>;

  /** The metrics of all processes of the service in the Prometheus text format. */
  scrape(): Promise<Buffer>;

  /** Stops accepting and finishes calls in flight within the shutdown grace period. The store stays open. */
  close(): Promise<void>;
}

/** Creates a server without starting it. Throws if the contract is inconsistent. */
export function createServer(options: ServerOptions): LatchkeyServer {
  const { settings, log } = options;
  const { limits, trustedProxies, tls } = settings;
  const metrics = settings.metrics && createMetrics();
  /** Readiness fails before the listener closes, so that load balancers stop routing first. */
  const draining = new AbortController();
  const stopping = new AbortController();
  // Every stream adds a listener.
  setMaxListeners(0, draining.signal, stopping.signal);
  const dependencies = createDependencies({ ...options, stopping: stopping.signal }, metrics);
  const { store, lastUsed, denials, routes } = dependencies;
  const warnings = createExpiryWarnings({ events: store.events, log });
  const readiness = createReadiness(store, draining.signal);

  const snapshot = async () => metrics?.snapshot() ?? [];
  const readMetrics = options.scrape ?? (async () => formatMetrics([await snapshot()]));
  const scrape = shareScrapes(async () => Buffer.from(await readMetrics()));
  const responseBudget = createResponseBudget(limits.responseBudget);
  const servesMetrics = settings.metrics && settings.metrics.port === undefined;
  const dispatch = createDispatcher({
    cors: createCors(settings),
    handlers: createHandlers(dependencies, {
      readiness,
      responseBudget,
      scrape: servesMetrics ? scrape : undefined,
    }),
    log,
    isSecure: tls !== undefined,
    onOtherRequest: ({ method, path, status = 0 }) =>
      metrics?.otherRequests.inc({
        page: method === "OPTIONS" ? "preflight" : endpointLabel(path),
        status,
      }),
    limits,
    importedKeys: settings.importedKeys,
    redactKeys: dependencies.redactKeys,
  });
  const listener = createListener({
    onExchange: dispatch,
    limits,
    responseBudget,
    trustedProxies,
    onMalformedRequest(requestId, status) {
      metrics?.otherRequests.inc({ page: "other", status });
      log.info({ request_id: requestId, status }, "malformed or incomplete request");
    },
    tls: tls && { contents: tls.contents, watch: createTlsReloader({ ...tls, log }) },
  });
  metrics?.addServer({
    connections: () => listener.connections,
    responseBytes: () => responseBudget.used,
    storeConnections: () => store.connections?.(),
    isReady: readiness.check,
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
      draining.abort();
      routes.close();
      await listener.stopAccepting();
      stopping.abort();
      await listener.close(settings.shutdownGrace);
      await closeWriters({ lastUsed, denials, warnings, log });
      metrics?.close();
    },
  };
}

interface Writers {
  readonly lastUsed: LastUsedTracker;
  readonly denials: Denials;
  readonly warnings: ExpiryWarnings;
  readonly log: ServiceLogger;
}

const flushTimeout = 2_000;

/** Flushes pending writes. If the store is unreachable, they are lost after the timeout. */
async function closeWriters({ lastUsed, denials, warnings, log }: Writers): Promise<void> {
  const deadline = new AbortController();
  const closing = [
    lastUsed.close(deadline.signal),
    denials.close(deadline.signal),
    warnings.close(),
  ];
  const written = Promise.all(closing).then(() => true);
  if (!(await withTimeout(written, flushTimeout, () => false, { keepsRunning: true }))) {
    deadline.abort();
    log.warn(
      { uses: lastUsed.pending, denials: denials.pending },
      "store timed out during shutdown: some last-used times and denied calls were not written",
    );
  }
}
