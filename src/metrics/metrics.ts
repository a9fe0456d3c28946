import { type CacheCounts, cacheCounts } from "../cache-counts.js";
import { inTime } from "../in-time.js";
import type { ConnectionUse } from "../store/store.js";
import { version } from "../version.js";
import { type CallMetrics, createCallMetrics } from "./call-metrics.js";
import { watchEventLoopLag } from "./event-loop-lag.js";
import { counter, type Family, gauge, only, type Snapshot, type Value } from "./family.js";
import { createLabelCounts, type LabelCounts } from "./label-counts.js";
import { readProcessMetrics } from "./process-metrics.js";
import { createSessionMetrics, type SessionMetrics } from "./session-metrics.js";
import { startTime } from "./start-time.js";
import { createStoreMetrics, type StoreMetrics } from "./store-metrics.js";

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
export interface ServerState {
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
        inTime(isReady(), patience, () => false),
        inTime(sessions.countExpired(), patience, () => undefined),
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
        gauge("latchkey_connections_open", "Connections that are open.", only(connections)),
        gauge(
          "latchkey_store_ready",
          "Whether the store answers, 1 or 0; of several workers the worst.",
          only(ready ? 1 : 0),
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
