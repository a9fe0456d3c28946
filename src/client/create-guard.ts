import type { ConnectError } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import {
  type ClientOptions,
  requireKey,
  retryCalls,
  sendKey,
} from "../contract/client-interceptors.js";
import { silenceTimeout } from "../contract/reconnect.js";
import { createClientOn, type LatchkeyClient } from "./client.js";
import { type CredentialWatch, startCredentialWatch } from "./credential-watch.js";
import type { Decision } from "./decision.js";
import { createDecisionCache } from "./decision-cache.js";
import { createGuardFromParts, type Guard } from "./guard.js";

export interface GuardOptions extends ClientOptions {
  /**
   * Maximum age of the information behind a cached decision, in milliseconds;
   * 2,000 by default. After a longer silence of the service, every check is a call.
   */
  readonly maxStaleness?: number | undefined;
  /** Maximum number of cached decisions; 10,000 by default. */
  readonly maxEntries?: number | undefined;
  /** Maximum time in the cache, in milliseconds; 60,000 by default. */
  readonly maxAge?: number | undefined;
  /** Timeout of a call, in milliseconds; 2,000 by default. */
  readonly timeout?: number | undefined;
  /** Called each time that the stream of changes fails. The guard reconnects by itself. */
  readonly onError?: ((error: ConnectError) => void) | undefined;
}

/** Several heartbeats per `maxStaleness`, so that one may be late. */
const heartbeatsPerStaleness = 4;
/** The range of heartbeats in milliseconds. */
const minHeartbeat = 50;
const maxHeartbeat = 60_000;

/** The range of each option. */
const limits = {
  maxStaleness: [0, 24 * 60 * 60_000],
  maxEntries: [0, 1_000_000],
  maxAge: [0, Number.POSITIVE_INFINITY],
  timeout: [1, 2 ** 31 - 1],
} as const;

/** Creates a guard. Its key needs the permission `access:check`. Throws without a key, or if an option is out of range. */
export function createGuard(options: GuardOptions): Guard {
  const { maxStaleness = 2_000, maxEntries = 10_000, maxAge = 60_000, timeout = 2_000 } = options;
  assertLimits({ maxStaleness, maxEntries, maxAge, timeout });
  const keys = trackKeyRotation(requireKey(options.key), () => watch.reopen());
  const client = createLatchkeyClient({ ...options, key: keys.current });
  const { watchCredentials } = client.access;
  const cache = createDecisionCache<Decision>({ maxEntries, maxAge });
  const now = createSuspendAwareClock();
  const heartbeat = heartbeatFor(maxStaleness);
  let respondedAt = Number.NEGATIVE_INFINITY;
  const checkAccess: typeof client.access.checkAccess = async (request, callOptions) => {
    const response = await client.access.checkAccess(request, callOptions);
    respondedAt = now();
    return response;
  };
  const watch: CredentialWatch = startCredentialWatch({
    access: { watchCredentials },
    heartbeat,
    onChange: cache.invalidate,
    onReset: cache.clear,
    onSilence() {
      // If calls fail too, the connection is dead: the next call opens a new one.
      // If calls succeed, only the stream is broken.
      if (now() - respondedAt > silenceTimeout(heartbeat)) {
        client.close();
      }
    },
    onError: options.onError,
    now,
  });
  const guard = createGuardFromParts({
    access: { checkAccess },
    watch,
    cache,
    maxStaleness,
    timeout,
    now,
  });
  return {
    ...guard,
    async close() {
      keys.close();
      await guard.close();
      client.close();
    },
  };
}

/**
 * Detects that the key was replaced. The new one may belong to another tenant,
 * whose changes the stream of the old key does not contain.
 */
function trackKeyRotation(key: NonNullable<ClientOptions["key"]>, onRotation: () => void) {
  let last: string | undefined;
  let isClosed = false;
  return {
    async current(): Promise<string> {
      const current = typeof key === "string" ? key : await key();
      if (isClosed) {
        // A call would open a connection that is never closed.
        throw new Error("The guard is closed.");
      }
      const isRotated = last !== undefined && current !== last;
      last = current;
      if (isRotated) {
        onRotation();
      }
      return current;
    },

    close() {
      isClosed = true;
    },
  };
}

function heartbeatFor(maxStaleness: number): number {
  const heartbeat = Math.round(maxStaleness / heartbeatsPerStaleness);
  return Math.min(Math.max(heartbeat, minHeartbeat), maxHeartbeat);
}

function assertLimits(values: Readonly<Record<keyof typeof limits, number>>): void {
  for (const [name, [min, max]] of Object.entries(limits)) {
    const value = values[name as keyof typeof limits];
    if (!(value >= min && value <= max)) {
      throw new RangeError(`${name} must be a number from ${min} to ${max}`);
    }
  }
}

export interface LatchkeyNodeClient extends LatchkeyClient {
  /** Closes the connection and aborts pending calls. A later call opens a new connection. */
  close(): void;
}

/** Interval of pings on an idle connection, to detect a dead one. */
const pingInterval = 5_000;
/** Time without a response to a ping after which the connection counts as dead. */
const pingTimeout = 5_000;

/** Creates a gRPC client. Failed calls are retried if that is safe. Throws without a key. */
export function createLatchkeyClient(options: ClientOptions): LatchkeyNodeClient {
  requireKey(options.key);
  const sessionManager = new Http2SessionManager(options.url, {
    pingIntervalMs: pingInterval,
    pingTimeoutMs: pingTimeout,
  });
  const interceptors = [retryCalls(), sendKey(options)];
  const transport = createGrpcTransport({ baseUrl: options.url, sessionManager, interceptors });
  return { ...createClientOn(transport), close: () => sessionManager.abort() };
}

/** Milliseconds by which the clocks may diverge without a suspend. */
const maxDivergence = 50;

/**
 * Creates a monotonic clock that also counts the time for which the machine was
 * suspended: `performance.now` may stop then, and old information would look
 * fresh. Setting the wall clock forward looks like a suspend, which is safe.
 */
export function createSuspendAwareClock(
  monotonic: () => number = () => performance.now(),
  wallClock: () => number = () => Date.now(),
): () => number {
  let suspended = 0;
  let offset = wallClock() - monotonic();
  return () => {
    const elapsed = monotonic();
    const current = wallClock() - elapsed;
    if (current - offset > maxDivergence) {
      suspended += current - offset;
    }
    offset = current;
    return elapsed + suspended;
  };
}
