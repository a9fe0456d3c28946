import type { ConnectError } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { type ClientOptions, retryLost, sendKey } from "../contract/client-interceptors.js";
import { longestSilence } from "../lib/reconnect.js";
import type { GuardAnswer } from "./check-request.js";
import { createClientOn, type LatchkeyClient } from "./client.js";
import { type CredentialWatch, startCredentialWatch } from "./credential-watch.js";
import { createAnswerCache } from "./decision-cache.js";
import { createGuardFromParts, type Guard } from "./guard.js";

export interface GuardOptions extends ClientOptions {
  /**
   * How old knowledge may be to be answered from the cache, in milliseconds;
   * 2,000 by default. While the service was not heard from for longer, it is
   * asked each time.
   */
  readonly maxStaleness?: number | undefined;
  /** How many answers the cache holds at most; 10,000 by default. */
  readonly maxEntries?: number | undefined;
  /** How long an answer is kept at most, in milliseconds; a minute by default. */
  readonly maxAge?: number | undefined;
  /** How long the service may take to answer, in milliseconds; 2,000 by default. */
  readonly timeout?: number | undefined;
  /** Told each time that the stream of changes breaks. The guard mends it by itself. */
  readonly onError?: ((error: ConnectError) => void) | undefined;
}

/** How many heartbeats fit into `maxStaleness`, so that a late one does no harm. */
const heartbeatsPerStaleness = 4;
/** What the service takes as heartbeat_ms. */
const shortestHeartbeat = 50;
const longestHeartbeat = 60_000;

/** What the options may be: from, and to. */
const limits = {
  maxStaleness: [0, 24 * 60 * 60_000],
  maxEntries: [0, 1_000_000],
  maxAge: [0, Number.POSITIVE_INFINITY],
  timeout: [1, 2 ** 31 - 1],
} as const;

/** Creates a guard with a key that holds `access:check`. An option that makes no sense throws. */
export function createGuard(options: GuardOptions): Guard {
  const { maxStaleness = 2_000, maxEntries = 10_000, maxAge = 60_000, timeout = 2_000 } = options;
  checkLimits({ maxStaleness, maxEntries, maxAge, timeout });
  const keys = followKey(options.key, () => watch.reopen());
  const client = createLatchkeyClient({ ...options, key: keys.current });
  const { watchCredentials } = client.access;
  const cache = createAnswerCache<GuardAnswer>({ maxEntries, maxAge });
  const now = createSleeplessClock();
  const heartbeat = heartbeatFor(maxStaleness);
  let answeredAt = Number.NEGATIVE_INFINITY;
  const checkAccess: typeof client.access.checkAccess = async (request, callOptions) => {
    const response = await client.access.checkAccess(request, callOptions);
    answeredAt = now();
    return response;
  };
  const watch: CredentialWatch = startCredentialWatch({
    access: { watchCredentials },
    heartbeat,
    onChange: cache.forget,
    onReset: cache.clear,
    onSilence() {
      // A dead connection would be tried again and again: the next call opens another one. On one
      // that still answers, only the stream is broken.
      if (now() - answeredAt > longestSilence(heartbeat)) {
        client.close();
      }
    },
    onError: options.onError,
    now,
  });
  const guard = createGuardFromParts({
    access: { checkAccess },
    ...{ watch, cache, maxStaleness, timeout, now },
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
 * Tells when the key becomes another one. It may be one of another tenant, of
 * which the stream that was opened with the key before tells nothing.
 */
function followKey(key: ClientOptions["key"], onRotation: () => void) {
  let last: string | undefined;
  let isClosed = false;
  return {
    async current(): Promise<string> {
      const current = typeof key === "string" ? key : await key();
      if (isClosed) {
        // A call now would open a connection that nobody ends.
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
  const wanted = Math.round(maxStaleness / heartbeatsPerStaleness);
  return Math.min(Math.max(wanted, shortestHeartbeat), longestHeartbeat);
}

function checkLimits(values: Readonly<Record<keyof typeof limits, number>>): void {
  for (const [name, [least, most]] of Object.entries(limits)) {
    const value = values[name as keyof typeof limits];
    if (!(value >= least && value <= most)) {
      throw new RangeError(`${name} must be a number from ${least} to ${most}`);
    }
  }
}

export interface LatchkeyNodeClient extends LatchkeyClient {
  /** Ends the connection, and the calls under way with it. A later call opens a new one. */
  close(): void;
}

/** How often a connection is tried while nothing comes, so that one that broke is noticed. */
const pingInterval = 5_000;
/** How long it may take to answer such a try before the connection counts as broken. */
const pingTimeout = 5_000;

/** Creates a client that speaks gRPC. Calls that got lost are sent again where that is safe. */
export function createLatchkeyClient(options: ClientOptions): LatchkeyNodeClient {
  const sessionManager = new Http2SessionManager(options.url, {
    pingIntervalMs: pingInterval,
    pingTimeoutMs: pingTimeout,
  });
  const interceptors = [retryLost(), sendKey(options)];
  const transport = createGrpcTransport({ baseUrl: options.url, sessionManager, interceptors });
  return { ...createClientOn(transport), close: () => sessionManager.abort() };
}

/** What the clocks may differ by without the machine having slept, in milliseconds. */
const leastSleep = 50;

/**
 * Creates a clock in milliseconds that only runs forward and also counts the
 * time that the machine slept, or was frozen: the monotonic clock of the
 * process may stand still then, and what is old would look fresh. A calendar
 * that is set forward looks like sleep too, which errs on the safe side.
 */
export function createSleeplessClock(
  monotonic: () => number = () => performance.now(),
  calendar: () => number = () => Date.now(),
): () => number {
  let slept = 0;
  let distance = calendar() - monotonic();
  return () => {
    const elapsed = monotonic();
    const present = calendar() - elapsed;
    if (present - distance > leastSleep) {
      slept += present - distance;
    }
    distance = present;
    return elapsed + slept;
  };
}
