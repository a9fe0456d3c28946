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
  singleValue,
  type Snapshot,
  type Value,
} from "./families.js";
import { createSessionMetrics, type SessionMetrics } from "./sessions.js";
import { createStoreMetrics, type StoreMetrics } from "./store.js";

/** What this process counts, and tells when it is asked. */
export interface Metrics {
  readonly calls: CallMetrics;
  readonly sessions: Pick<SessionMetrics, "observe">;
  readonly storeCalls: Pick<StoreMetrics, "counterOf">;
  /** Requests that are no call, by the page that they were for and the status of the answer. */
  readonly pages: Pick<LabelCounts, "count">;
  /** Calls that were refused by a limit, by its name. */
  readonly rateLimits: Pick<LabelCounts, "count">;

  /** All that was counted so far, and the state of what is told. */
  snapshot(state: ServerState): Promise<Snapshot>;

  close(): void;
}

/** What can be seen of a server at any moment. */
interface ServerState {
  readonly connections: number;
  /** How the store uses its own, where it has any. */
  readonly storeConnections: ConnectionUse | undefined;
  isReady(): Promise<boolean>;
}

/** How long is waited for a store that does not answer, in milliseconds: whoever scrapes waits as well. */
const patience = 1_000;

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
        withTimeout(isReady(), patience, () => false),
        withTimeout(sessions.countExpired(), patience, () => undefined),
      ]);
      return [
        ...calls.families(),
        counter(
          "latchkey_http_requests_total",
          "Requests that are no call, by page and status of the answer.",
          pages.values(),
        ),
        counter(
          "latchkey_rate_limited_total",
          "Calls that were refused by a rate limit or the session quota, by limit.",
          rateLimits.values(),
        ),
        ...sessions.families(),
        ...storeCalls.families(),
        gauge(
          "latchkey_store_connections",
          "Connections to the store that are in use, and calls that wait for one.",
          storeConnections ? valuesOf(storeConnections) : [],
        ),
        ...cacheFamilies(),
        ...lag.families(),
        gauge("latchkey_connections_open", "Connections that are open.", singleValue(connections)),
        gauge(
          "latchkey_store_ready",
          "Whether the store answers, 1 or 0; of several workers the worst.",
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
    counter("latchkey_cache_hits_total", "What was found in a cache, by cache.", values("hits")),
    counter(
      "latchkey_cache_misses_total",
      "What was not found in a cache, by cache.",
      values("misses"),
    ),
  ];
}

function buildInfo(): Family {
  const labels = { version, node: process.version };
  const help = "Which version this is, and of which Node.js; the value is 1.";
  return gauge("latchkey_build_info", help, [{ labels, value: 1 }], "first");
}

/** Counts what happens seldom, by labels whose values are few. */
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
 * What is known of this process: CPU, memory, files, garbage collection. The
 * library is loaded, and begins to watch the last of these, when it is first
 * asked for: a process that nobody scrapes has no use for it.
 */
async function readProcessMetrics(): Promise<Snapshot> {
  registry ??= createRegistry();
  return (await (await registry).getMetricsAsJSON()) as Snapshot;
}

async function createRegistry() {
  const { collectDefaultMetrics, Registry } = await import("prom-client");
  const register = new Registry();
  // We watch the event loop ourselves, from the start on, and tell the worst of several workers.
  collectDefaultMetrics({ register, eventLoopMonitoringPrecision: 60_000 });
  for (const { name } of register.getMetricsAsArray()) {
    if (name.startsWith("nodejs_eventloop_lag")) {
      register.removeSingleMetric(name);
    }
  }
  return register;
}

/** When this process began; of several that are one service, the first. */
export function startTime(): Family {
  return gauge(
    "latchkey_start_time_seconds",
    "When the service was started, in seconds since 1970.",
    singleValue(Math.round(performance.timeOrigin) / 1_000),
    "min",
  );
}
