import { setMaxListeners } from "node:events";
import type { AddressInfo } from "node:net";
import type { Logger } from "pino";
import { createAddressOf, createReadAddressOf } from "../caller-address.js";
import type { Settings } from "../config.js";
import { createDenials } from "../events/denials.js";
import { createWarnings } from "../events/warnings.js";
import { createInterceptors } from "../interceptors/interceptors.js";
import { createKeyring } from "../keys.js";
import { toText } from "../metrics/exposition.js";
import type { Snapshot } from "../metrics/family.js";
import { createMetrics } from "../metrics/metrics.js";
import { shareScrapes } from "../metrics/share-scrapes.js";
import { observeStore } from "../observe-store.js";
import { createRateLimits } from "../rate-limits/rate-limits.js";
import type { Clock, Store } from "../store/store.js";
import type { Tracing } from "../tracing/tracing.js";
import { createUses } from "../uses.js";
import { closeWriters } from "./close-writers.js";
import { createCors } from "./cors.js";
import { createFollowTls } from "./follow-tls-files.js";
import { createFront } from "./front.js";
import { createImplementations, createOpenImplementations } from "./implementations.js";
import { createListener } from "./listener.js";
import { createPages, pageAt } from "./pages.js";
import { createReadiness } from "./readiness.js";
import { createGateway } from "./rest/gateway.js";
import { createRpcDoors } from "./rpc-doors.js";

interface ServerOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Milliseconds after which the uses of keys are written at the latest. */
  readonly usesInterval?: number;
  readonly tracing?: Tracing | undefined;
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
  const { settings, log, clock = Date.now, usesInterval, tracing } = options;
  const { keyHeader, bodyLimit, limits, trustedProxies, tls } = settings;
  const metrics = settings.metrics && createMetrics();
  const counterOf = metrics?.storeCalls.counterOf;
  const observed = observeStore(options.store, { counterOf, tracing });
  const store = metrics?.sessions.observe(observed) ?? observed;
  const keyring = createKeyring(settings.peppers, settings);
  const uses = createUses({ applications: store.applications, clock, interval: usesInterval });
  const addressOf = createAddressOf(trustedProxies);
  const readAddressOf = createReadAddressOf(trustedProxies);
  const denials = createDenials({
    store,
    keyring,
    addressOf,
    keyHeader,
    log,
  });
  const rateLimits = createRateLimits({
    settings: settings.rateLimits,
    counts: store.rateCounts,
    readAddressOf,
    onRefusal: metrics?.rateLimits.count,
    clock,
    log,
  });
  const warnings = createWarnings({ events: store.events, log });
  /** Whoever chooses among instances is to know first. */
  const leaving = new AbortController();
  const stopping = new AbortController();
  // Every stream listens for it.
  setMaxListeners(0, leaving.signal, stopping.signal);
  const implementations = createImplementations({
    store,
    keyring,
    addressOf,
    uses,
    clock,
    settings,
    stopping: stopping.signal,
  });
  const methods = implementations.flatMap(({ service }) => service.methods);
  const interceptors = createInterceptors({
    store,
    keyring,
    addressOf,
    readAddressOf,
    rateLimits,
    settings,
    uses,
    denials,
    calls: metrics?.calls,
    tracing,
    log,
    methods,
  });
  const readiness = createReadiness(store, leaving.signal);

  const rpcDoors = createRpcDoors({
    implementations,
    openImplementations: createOpenImplementations(implementations, readiness, stopping.signal),
    interceptors,
    bodyLimit,
    jsonDepth: limits.jsonDepth,
    patience: settings.requestTimeout,
  });
  const snapshot = async () =>
    metrics?.snapshot({
      connections: listener.connections,
      storeConnections: store.connections?.(),
      isReady: readiness.check,
    }) ?? [];
  const tell = options.scrape ?? (async () => toText([await snapshot()]));
  const scrape = shareScrapes(async () => Buffer.from(await tell()));
  const isShownHere = settings.metrics && settings.metrics.port === undefined;
  const pages = createPages({ readiness, keyHeader, scrape: isShownHere ? scrape : undefined });
  const gateway = createGateway({
    implementations,
    interceptors,
    bodyLimit,
    jsonDepth: limits.jsonDepth,
  });
  const front = createFront({
    cors: createCors(settings.corsOrigins, keyHeader),
    doors: [...rpcDoors, pages, gateway],
    log,
    isSecure: tls !== undefined,
    onPage: ({ method, path, status = 0 }) =>
      metrics?.pages.count(method === "OPTIONS" ? "preflight" : pageAt(path), status),
    limits,
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
