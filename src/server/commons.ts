import type { Logger } from "pino";
import {
  type AddressOf,
  createAddressOf,
  createReadAddressOf,
  type ReadAddressOf,
} from "../caller-address.js";
import type { Settings } from "../config.js";
import { createDenials, type Denials } from "../events/denials.js";
import { createKeyring, type Keyring } from "../keys.js";
import type { CallMetrics } from "../metrics/call-metrics.js";
import type { Metrics } from "../metrics/metrics.js";
import { observeStore } from "../observe-store.js";
import { createRateLimits, type RateLimits } from "../rate-limits/rate-limits.js";
import type { Clock, Store } from "../store/store.js";
import type { Tracing } from "../tracing/tracing.js";
import { createUses, type Uses } from "../uses.js";
import { createWithoutSecrets, type WithoutSecrets } from "./without-secrets.js";

/** What the server is made with. */
export interface CommonsOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Milliseconds after which the uses of keys are written at the latest. */
  readonly usesInterval?: number;
  readonly tracing?: Tracing | undefined;
}

/** What calls have in common, by whichever door they come. */
export interface Commons {
  /** With its calls counted. */
  readonly store: Store;
  readonly settings: Settings;
  readonly keyring: Keyring;
  readonly addressOf: AddressOf;
  readonly readAddressOf: ReadAddressOf;
  readonly rateLimits: RateLimits;
  readonly uses: Uses;
  readonly denials: Denials;
  /** Absent where metrics are off. */
  readonly calls: CallMetrics | undefined;
  readonly tracing: Tracing | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly withoutSecrets: WithoutSecrets;
}

export function createCommons(options: CommonsOptions, metrics: Metrics | undefined): Commons {
  const { settings, log, clock = Date.now, usesInterval, tracing } = options;
  const { keyHeader, trustedProxies } = settings;
  const observed = observeStore(options.store, {
    counterOf: metrics?.storeCalls.counterOf,
    tracing,
  });
  const store = metrics?.sessions.observe(observed) ?? observed;
  const keyring = createKeyring(settings.peppers, settings);
  const addressOf = createAddressOf(trustedProxies);
  const readAddressOf = createReadAddressOf(trustedProxies);
  return {
    store,
    settings,
    keyring,
    addressOf,
    readAddressOf,
    rateLimits: createRateLimits({
      settings: settings.rateLimits,
      counts: store.rateCounts,
      readAddressOf,
      onRefusal: metrics?.rateLimits.count,
      clock,
      log,
    }),
    uses: createUses({ applications: store.applications, clock, interval: usesInterval }),
    denials: createDenials({ store, keyring, addressOf, keyHeader, log }),
    calls: metrics?.calls,
    tracing,
    clock,
    log,
    withoutSecrets: createWithoutSecrets(settings.foreignKeys),
  };
}
