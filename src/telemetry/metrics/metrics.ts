import type { CacheCounts } from "../../lib/cache.js";
import { withTimeout } from "../../lib/timeout.js";
import { version } from "../../lib/version.js";
import type { ConnectionUse } from "../../store/port/store.js";
import { cacheCounts } from "./caches.js";
import { type CallMetrics, createCallMetrics } from "./calls.js";
import { watchEventLoopLag } from "./event-loop.js";
import {
  counter,
  type Family,
  gauge,
  type Labels,
  type Snapshot,
  singleValue,
  type Value,
} from "./families.js";
import { createSessionMetrics, type SessionMetrics } from "./sessions.js";
import { createStoreMetrics, type StoreMetrics } from "./store.js";

/** The metrics of this process. */
export interface Metrics {
  readonly calls: CallMetrics;
  readonly sessions: Pick<SessionMetrics, "observe">;
  readonly storeCalls: Pick<StoreMetrics, "counterOf">;
  /** HTTP requests other than API calls, by page and response status. */
  readonly pages: Pick<LabelCounts, "count">;
  /** Calls refused by a limit, by its name. */
  readonly rateLimits: Pick<LabelCounts, "count">;

  snapshot(state: ServerState): Promise<Snapshot>;

  close(): void;
}

/** The current state of the server, for gauges. */
interface ServerState {
  readonly connections: number;
  /** The store's connection pool, if it has one. */
  readonly storeConnections: ConnectionUse | undefined;
  isReady(): Promise<boolean>;
}

/** Milliseconds to wait for the store. The scraper waits as long. */
const storeTimeout = 1_000;

export function createMetrics(): Metrics {
  const calls = createCallMetrics();
  const sessions = createSessionMetrics();
  const storeCalls = createStoreMetrics();
  const pages = createLabelCounts("page", "status");
  const rateLimits = createLabelCounts("limit");
  const lag = watchEventLoopLag();

  return {
    calls,
    sessions,
    storeCalls,
    pages,
    rateLimits,

    async snapshot({ connections, storeConnections, isReady }) {
      const [ready] = await Promise.all([
        withTimeout(isReady(), storeTimeout, () => false),
        withTimeout(sessions.countExpired(), storeTimeout, () => undefined),
      ]);
      return [
        ...calls.families(),
        counter(
          "latchkey_http_requests_total",
          "HTTP requests other than API calls, by page and response status.",
          pages.values(),
        ),
        counter(
          "latchkey_rate_limited_total",
          "Calls refused by a rate limit or the session quota, by limit.",
          rateLimits.values(),
        ),
        ...sessions.families(),
        ...storeCalls.families(),
        gauge(
          "latchkey_store_connections",
          "Store connections by state: in use, or waited for by a call.",
          storeConnections ? valuesOf(storeConnections) : [],
        ),
        ...cacheFamilies(),
        ...lag.families(),
        gauge("latchkey_connections_open", "Open client connections.", singleValue(connections)),
        gauge(
          "latchkey_store_ready",
          "1 if the store responds, else 0. With several workers, the minimum.",
          singleValue(ready ? 1 : 0),
          "min",
        ),
        buildInfo(),
        startTime(),
        ...(await readProcessMetrics()),
      ];
    },

    close: () => lag.stop(),
  };
}

function valuesOf({ inUse, waiting }: ConnectionUse): Value[] {
  return [
    { labels: { state: "in_use" }, value: inUse },
    { labels: { state: "waiting" }, value: waiting },
  ];
}

function cacheFamilies(): Family[] {
  const values = (figure: keyof CacheCounts) =>
    Object.entries(cacheCounts).map(([cache, counts]) => ({
      labels: { cache },
      value: counts[figure],
    }));
  return [
    counter("latchkey_cache_hits_total", "Cache hits by cache.", values("hits")),
    counter("latchkey_cache_misses_total", "Cache misses by cache.", values("misses")),
  ];
}

function buildInfo(): Family {
  const labels = { version, node: process.version };
  const help = "Version of Latchkey and Node.js. The value is always 1.";
  return gauge("latchkey_build_info", help, [{ labels, value: 1 }], "first");
}

/** Counters with labels, for infrequent events and few label values. */
interface LabelCounts {
  count(...labels: readonly (string | number)[]): void;
  values(): Value[];
}

function createLabelCounts(...names: readonly string[]): LabelCounts {
  const counts = new Map<string, { readonly labels: Labels; value: number }>();

  return {
    count(...labels) {
      const key = labels.join(" ");
      const counted = counts.get(key);
      if (counted) {
        counted.value++;
      } else {
        const pairs = names.map((name, at) => [name, labels[at] ?? ""]);
        counts.set(key, { labels: Object.fromEntries(pairs), value: 1 });
      }
    },

    values: () => [...counts.values()],
  };
}

let registry: Promise<{ getMetricsAsJSON(): Promise<unknown> }> | undefined;

/**
 * CPU, memory, file descriptors and garbage collection of this process. The
 * library is loaded on the first scrape, so it costs nothing without one.
 */
async function readProcessMetrics(): Promise<Snapshot> {
  registry ??= createRegistry();
  return (await (await registry).getMetricsAsJSON()) as Snapshot;
}

async function createRegistry() {
  const { collectDefaultMetrics, Registry } = await import("prom-client");
  const register = new Registry();
  // Replaced by latchkey_event_loop_lag_seconds, which measures from the start and across workers.
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: 60_000 });
  for (const { name } of register.getMetricsAsArray()) {
    if (name.startsWith("nodejs_eventloop_lag")) {
      register.removeSingleMetric(name);
    }
  }
  return register;
}

/** The start time. With several processes, the earliest. */
export function startTime(): Family {
  return gauge(
    "latchkey_start_time_seconds",
    "Start time of the service in Unix seconds.",
    singleValue(Math.round(performance.timeOrigin) / 1_000),
    "min",
  );
}
