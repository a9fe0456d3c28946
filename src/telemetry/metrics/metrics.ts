import { withTimeout } from "../../lib/timeout.js";
import type { ConnectionUse } from "../../store/port/store.js";
import {
  createSessionMetrics,
  createStoreMetrics,
  type SessionMetrics,
  type StoreMetrics,
} from "../observe-store.js";
import { type CallMetrics, createCallMetrics } from "./calls.js";
import { counter, gauge, type Labels, type Snapshot, singleValue, type Value } from "./families.js";
import {
  buildInfo,
  cacheFamilies,
  readProcessMetrics,
  startTime,
  watchEventLoopLag,
} from "./process.js";

/** The metrics of this process. */
export interface Metrics {
  readonly calls: CallMetrics;
  readonly sessions: Pick<SessionMetrics, "observe">;
  readonly storeCalls: Pick<StoreMetrics, "counterOf">;
  /** HTTP requests other than API calls, by page and response status. */
  readonly otherRequests: Pick<LabelCounts, "count">;
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
  const otherRequests = createLabelCounts("page", "status");
  const rateLimits = createLabelCounts("limit");
  const lag = watchEventLoopLag();

  return {
    calls,
    sessions,
    storeCalls,
    otherRequests,
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
          otherRequests.values(),
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
          "Connections in use and store calls waiting for a connection, by state.",
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
        const pairs = names.map((name, index) => [name, labels[index] ?? ""]);
        counts.set(key, { labels: Object.fromEntries(pairs), value: 1 });
      }
    },

    values: () => [...counts.values()],
  };
}
