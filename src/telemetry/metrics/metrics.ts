import { Counter, Gauge, Registry } from "prom-client";
import { withTimeout } from "../../lib/timeout.js";
import type { ConnectionUse } from "../../store/port/store.js";
import { storeTimeout } from "../observe-store.js";
import { type CallMetrics, createCallMetrics } from "./calls.js";
import {
  addBuildInfo,
  addCacheMetrics,
  addStartTime,
  processMetrics,
  watchEventLoopLag,
} from "./process.js";
import type { Snapshot } from "./snapshot.js";

/** The metrics of this process. Label values are never caller input, which bounds their number. */
export interface Metrics {
  readonly registry: Registry;
  readonly calls: CallMetrics;
  /** HTTP requests other than API calls, by page and response status. */
  readonly otherRequests: Counter<"page" | "status">;
  /** Calls refused by a limit, by its name. */
  readonly rateLimits: Counter<"limit">;

  /** Calls with forwarding headers from peers that are not trusted proxies. */
  readonly untrustedForwarding: Counter;

  /** Adds the gauges of a server. */
  addServer(state: ServerState): void;

  snapshot(): Promise<Snapshot>;

  close(): void;
}

/** The current state of the server, for gauges. */
interface ServerState {
  connections(): number;
  /** Bytes of responses that are built or not read yet. */
  responseBytes(): number;
  /** The store's connection pool, if it has one. */
  storeConnections(): ConnectionUse | undefined;
  isReady(): Promise<boolean>;
}

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const calls = createCallMetrics(registry);
  const otherRequests = new Counter({
    name: "latchkey_http_requests_total",
    help: "HTTP requests other than API calls, by page and response status.",
    labelNames: ["page", "status"],
    registers,
  });
  const rateLimits = new Counter({
    name: "latchkey_rate_limited_total",
    help: "Calls refused by a rate limit or the session quota, by limit.",
    labelNames: ["limit"],
    registers,
  });
  const untrustedForwarding = new Counter({
    name: "latchkey_untrusted_forwarding_total",
    help: "Calls with forwarding headers from a peer that is not in TRUSTED_PROXIES.",
    registers,
  });
  addCacheMetrics(registry);
  addBuildInfo(registry);
  addStartTime(registry);
  const stopWatchingLag = watchEventLoopLag(registry);

  return {
    registry,
    calls,
    otherRequests,
    rateLimits,
    untrustedForwarding,
    addServer: (state) => addServerGauges(registry, state),
    // Observing garbage collection costs time, so it starts with the first scrape.
    snapshot: () => Registry.merge([registry, processMetrics()]).getMetricsAsJSON(),
    close: stopWatchingLag,
  };
}

function addServerGauges(registry: Registry, state: ServerState): void {
  const registers = [registry];
  new Gauge({
    name: "latchkey_connections_open",
    help: "Open client connections.",
    registers,
    collect() {
      this.set(state.connections());
    },
  });
  new Gauge({
    name: "latchkey_response_bytes",
    help: "Bytes of large responses that are built or that their clients have not read yet.",
    registers,
    collect() {
      this.set(state.responseBytes());
    },
  });
  new Gauge({
    name: "latchkey_store_connections",
    help: "Connections in use and store calls waiting for a connection, by state.",
    labelNames: ["state"],
    registers,
    collect() {
      const connections = state.storeConnections();
      if (connections) {
        this.set({ state: "in_use" }, connections.inUse);
        this.set({ state: "waiting" }, connections.waiting);
      }
    },
  });
  new Gauge({
    name: "latchkey_store_ready",
    help: "1 if the store responds, else 0. With several workers, the minimum.",
    registers,
    aggregator: "min",
    async collect() {
      const isReady = await withTimeout(state.isReady(), storeTimeout, () => false);
      this.set(isReady ? 1 : 0);
    },
  });
}
