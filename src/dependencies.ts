import {
  type AddressOf,
  createAddressOf,
  createForwardedAddressOf,
  createReadAddressOf,
  type ForwardedAddressOf,
  type ReadAddressOf,
} from "./auth/caller-address.js";
import { type CursorSealerFactory, createCursorSealerFactory } from "./auth/cursor-sealing.js";
import { createGrantGuard, type GrantGuard } from "./auth/grants.js";
import { createKeyRedactor, createKeyring, type Keyring, type RedactKeys } from "./auth/keys.js";
import { createLastUsedTracker, type LastUsedTracker } from "./auth/last-used.js";
import { createReadKey, type ReadKey } from "./auth/read-key.js";
import type { Settings } from "./config/settings.js";
import { createRateLimits, type RateLimits } from "./limits/rate-limits.js";
import {
  createUntrustedForwarding,
  type UntrustedForwarding,
} from "./middleware/untrusted-forwarding.js";
import { createRunBatch, type RunBatch } from "./services/access/batch.js";
import { type Checks, createChecks } from "./services/access/check.js";
import { createGatewayCheck, type GatewayCheck } from "./services/access/gateways/gateway-check.js";
import { createRoutes, type Routes } from "./services/access/gateways/routes.js";
import { createPrincipals, type Principals } from "./services/access/principals.js";
import { type Commit, createCommit } from "./services/commit.js";
import { createDenials, type Denials } from "./services/events/denials.js";
import type { Clock, Store } from "./store/port/store.js";
import type { ServiceLogger } from "./telemetry/log.js";
import type { CallMetrics } from "./telemetry/metrics/calls.js";
import type { Metrics } from "./telemetry/metrics/metrics.js";
import {
  type CountSession,
  createSessionCounter,
  observeStore,
} from "./telemetry/observe-store.js";
import type { Tracing } from "./telemetry/tracing.js";

export interface DependencyOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly log: ServiceLogger;
  readonly clock?: Clock;
  /** Maximum delay in milliseconds before last-used times are written. */
  readonly lastUsedFlushInterval?: number;
  readonly tracing?: Tracing | undefined;
  /** Aborts when the server stops, which ends streams. */
  readonly stopping: AbortSignal;
}

/** What handlers and middleware share. Each takes the part that it needs. */
export interface Dependencies {
  /** Instrumented with metrics and tracing. */
  readonly store: Store;
  readonly settings: Settings;
  readonly keyring: Keyring;
  readonly readKey: ReadKey;
  readonly addressOf: AddressOf;
  readonly readAddressOf: ReadAddressOf;
  readonly forwardedAddressOf: ForwardedAddressOf;
  readonly rateLimits: RateLimits;
  readonly lastUsed: LastUsedTracker;
  readonly grantGuard: GrantGuard;
  readonly commit: Commit;
  readonly countSession: CountSession;
  readonly denials: Denials;
  readonly untrustedForwarding: UntrustedForwarding;
  /** The routes of gateways. Close them at shutdown. */
  readonly routes: Routes;
  readonly principals: Principals;
  readonly checks: Checks;
  /** Shared, as it limits the batches of a tenant. */
  readonly runBatch: RunBatch;
  readonly gatewayCheck: GatewayCheck;
  readonly createSealer: CursorSealerFactory;
  /** `undefined` if metrics are off. */
  readonly calls: CallMetrics | undefined;
  readonly tracing: Tracing | undefined;
  readonly clock: Clock;
  readonly log: ServiceLogger;
  readonly redactKeys: RedactKeys;
  /** Aborts when the server stops, which ends streams. */
  readonly stopping: AbortSignal;
}

export function createDependencies(
  options: DependencyOptions,
  metrics: Metrics | undefined,
): Dependencies {
  const { settings, log, clock = Date.now, lastUsedFlushInterval, tracing, stopping } = options;
  const { trustedProxies, keyHeader, grantPolicy } = settings;
  const store = observeStore(options.store, { registry: metrics?.registry, tracing });
  const keyring = createKeyring(settings.peppers, settings);
  const readKey = createReadKey(settings);
  const addressOf = createAddressOf(trustedProxies);
  const readAddressOf = createReadAddressOf(trustedProxies);
  const rateLimits = createRateLimits({
    settings: settings.rateLimits,
    counts: store.rateCounts,
    readAddressOf,
    onRefusal: (limit) => metrics?.rateLimits.inc({ limit }),
    clock,
    log,
  });
  const lastUsed = createLastUsedTracker({
    applications: store.applications,
    clock,
    interval: lastUsedFlushInterval,
  });
  const routes = createRoutes(settings.gatewayRoutes, log);
  const principals = createPrincipals({ store, keyring, lastUsed, grantPolicy });
  const checks = createChecks({ store, principals });
  return {
    store,
    settings,
    keyring,
    readKey,
    addressOf,
    readAddressOf,
    forwardedAddressOf: createForwardedAddressOf(trustedProxies),
    rateLimits,
    lastUsed,
    grantGuard: createGrantGuard(grantPolicy),
    commit: createCommit({ store, addressOf }),
    countSession: metrics ? createSessionCounter(store, metrics.registry) : () => {},
    untrustedForwarding: createUntrustedForwarding({
      trustedProxies,
      log,
      onCall: () => metrics?.untrustedForwarding.inc(),
    }),
    denials: createDenials({ store, keyring, addressOf, readKey, log }),
    routes,
    principals,
    checks,
    runBatch: createRunBatch({ checks, rateLimits }),
    gatewayCheck: createGatewayCheck({ checks, routes, rateLimits, keyHeader }),
    createSealer: createCursorSealerFactory({
      peppers: settings.peppers,
      storeId: store.id,
      clock,
    }),
    calls: metrics?.calls,
    tracing,
    clock,
    log,
    redactKeys: createKeyRedactor(settings.importedKeys),
    stopping,
  };
}
