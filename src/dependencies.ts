import {
  type AddressOf,
  createAddressOf,
  createReadAddressOf,
  type ReadAddressOf,
} from "./auth/caller-address.js";
import { createKeyRedactor, createKeyring, type Keyring, type RedactKeys } from "./auth/keys.js";
import { createLastUsedTracker, type LastUsedTracker } from "./auth/last-used.js";
import { createReadKey, type ReadKey } from "./auth/read-key.js";
import type { Settings } from "./config/settings.js";
import { createRateLimits, type RateLimits } from "./limits/rate-limits.js";
import {
  createUntrustedForwarding,
  type UntrustedForwarding,
} from "./middleware/untrusted-forwarding.js";
import { createRoutes, type Routes } from "./services/access/gateways/routes.js";
import { createDenials, type Denials } from "./services/events/denials.js";
import type { Clock, Store } from "./store/port/store.js";
import type { ServiceLogger } from "./telemetry/log.js";
import type { CallMetrics } from "./telemetry/metrics/calls.js";
import type { Metrics } from "./telemetry/metrics/metrics.js";
import { countSessions, observeStore } from "./telemetry/observe-store.js";
import type { Tracing } from "./telemetry/tracing.js";

export interface DependencyOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly log: ServiceLogger;
  readonly clock?: Clock;
  /** Maximum delay in milliseconds before last-used times are written. */
  readonly lastUsedFlushInterval?: number;
  readonly tracing?: Tracing | undefined;
}

/** The objects that all handlers share. */
export interface Dependencies {
  /** Instrumented with metrics and tracing. */
  readonly store: Store;
  readonly settings: Settings;
  readonly keyring: Keyring;
  readonly readKey: ReadKey;
  readonly addressOf: AddressOf;
  readonly readAddressOf: ReadAddressOf;
  readonly rateLimits: RateLimits;
  readonly lastUsed: LastUsedTracker;
  readonly denials: Denials;
  readonly untrustedForwarding: UntrustedForwarding;
  /** The routes of gateways. Close them at shutdown. */
  readonly routes: Routes;
  /** `undefined` if metrics are off. */
  readonly calls: CallMetrics | undefined;
  readonly tracing: Tracing | undefined;
  readonly clock: Clock;
  readonly log: ServiceLogger;
  readonly redactKeys: RedactKeys;
}

export function createDependencies(
  options: DependencyOptions,
  metrics: Metrics | undefined,
): Dependencies {
  const { settings, log, clock = Date.now, lastUsedFlushInterval, tracing } = options;
  const { trustedProxies } = settings;
  const observed = observeStore(options.store, {
    registry: metrics?.registry,
    tracing,
  });
  const store = metrics ? countSessions(observed, metrics.registry) : observed;
  const keyring = createKeyring(settings.peppers, settings);
  const readKey = createReadKey(settings);
  const addressOf = createAddressOf(trustedProxies);
  const readAddressOf = createReadAddressOf(trustedProxies);
  return {
    store,
    settings,
    keyring,
    readKey,
    addressOf,
    readAddressOf,
    rateLimits: createRateLimits({
      settings: settings.rateLimits,
      counts: store.rateCounts,
      readAddressOf,
      onRefusal: (limit) => metrics?.rateLimits.inc({ limit }),
      clock,
      log,
    }),
    lastUsed: createLastUsedTracker({
      applications: store.applications,
      clock,
      interval: lastUsedFlushInterval,
    }),
    untrustedForwarding: createUntrustedForwarding({
      trustedProxies,
      log,
      onCall: () => metrics?.untrustedForwarding.inc(),
    }),
    denials: createDenials({ store, keyring, addressOf, readKey, log }),
    routes: createRoutes(settings.gatewayRoutes, log),
    calls: metrics?.calls,
    tracing,
    clock,
    log,
    redactKeys: createKeyRedactor(settings.importedKeys),
  };
}
