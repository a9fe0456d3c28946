import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import { createAuthenticate } from "../auth/authenticate.js";
import type { AddressOf, ReadAddressOf } from "../auth/caller-address.js";
import type { Keyring } from "../auth/keys.js";
import type { LastUsedTracker } from "../auth/last-used.js";
import type { Settings } from "../config/settings.js";
import type { Denials } from "../services/events/denials.js";
import type { RateLimits } from "../services/rate-limits/rate-limits.js";
import type { Store } from "../store/port/store.js";
import type { CallMetrics } from "../telemetry/metrics/calls.js";
import type { Tracing } from "../telemetry/tracing.js";
import { createAuthenticateInterceptor, createLastUsedInterceptor } from "./authenticate.js";
import { createAuthorizeInterceptor } from "./authorize.js";
import { createDeadlineInterceptor } from "./deadline.js";
import { readHeaderFields } from "./header-fields.js";
import type { Interceptor } from "./interceptor.js";
import { createObserveInterceptor } from "./observe.js";
import { createRateLimitInterceptor } from "./rate-limit.js";
import { createReauthorizeInterceptor } from "./reauthorize.js";
import { createRestrictionsInterceptor } from "./restrictions.js";
import { createStreamLimitInterceptor } from "./stream-limit.js";
import { createValidateInterceptor } from "./validate.js";

interface InterceptorOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly addressOf: AddressOf;
  readonly readAddressOf: ReadAddressOf;
  readonly rateLimits: RateLimits;
  readonly settings: Settings;
  readonly lastUsed: LastUsedTracker;
  readonly denials: Denials;
  readonly calls: CallMetrics | undefined;
  readonly tracing: Tracing | undefined;
  readonly log: Logger;
  readonly methods: readonly DescMethod[];
}

/** The interceptors of every call, outermost first. */
export interface Interceptors {
  readonly observe: Interceptor;
  readonly deadline: Interceptor;
  /** Admits a call by its headers alone. */
  readonly admission: readonly Interceptor[];
  /** The part of `admission` that is safe to repeat: it counts nothing. */
  readonly reauthorization: readonly Interceptor[];
  /** Limits the open streams of an admitted caller. */
  readonly limitStreams: Interceptor;
  /** Interceptors that need the message. */
  readonly inspection: readonly Interceptor[];
}

export function createInterceptors(options: InterceptorOptions): Interceptors {
  const { store, keyring, addressOf, readAddressOf, rateLimits, settings, lastUsed, log, methods } =
    options;
  const { keyHeader, requestTimeout, limits } = settings;
  const authenticate = createAuthenticateInterceptor(
    createAuthenticate(store, keyring, settings.grantPolicy),
    keyHeader,
    rateLimits,
  );
  const checkRestrictions = createRestrictionsInterceptor(addressOf);
  const authorize = createAuthorizeInterceptor(methods);
  const reauthorization = [authenticate, checkRestrictions, authorize];
  return {
    observe: createObserveInterceptor(log, options),
    deadline: createDeadlineInterceptor(requestTimeout),
    admission: [
      authenticate,
      checkRestrictions,
      // After the restrictions: use of a stolen key elsewhere must not exhaust the owner's rate.
      createRateLimitInterceptor(rateLimits),
      createLastUsedInterceptor(lastUsed),
      authorize,
    ],
    reauthorization,
    limitStreams: createStreamLimitInterceptor(limits.streams, readAddressOf),
    inspection: [
      readHeaderFields,
      createValidateInterceptor(limits.listItems),
      // After validation, which may yield to the event loop.
      createReauthorizeInterceptor(reauthorization, methods),
    ],
  };
}
