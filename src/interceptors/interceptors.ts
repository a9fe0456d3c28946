import type { DescMethod } from "@bufbuild/protobuf";
import type { Logger } from "pino";
import type { AddressOf, ReadAddressOf } from "../caller-address.js";
import type { Settings } from "../config.js";
import type { Denials } from "../events/denials.js";
import { createIdentify } from "../identify.js";
import type { Keyring } from "../keys.js";
import type { CallMetrics } from "../metrics/call-metrics.js";
import type { RateLimits } from "../rate-limits/rate-limits.js";
import type { Store } from "../store/store.js";
import type { Tracing } from "../tracing/tracing.js";
import type { Uses } from "../uses.js";
import { createAuthenticateInterceptor } from "./authenticate.js";
import { createAuthorizeInterceptor } from "./authorize.js";
import { createCheckPlaceInterceptor } from "./check-place.js";
import { createDeadlineInterceptor } from "./deadline.js";
import type { Interceptor } from "./interceptor.js";
import { createLimitRateInterceptor } from "./limit-rate.js";
import { createLimitStreamsInterceptor } from "./limit-streams.js";
import { createNoteUseInterceptor } from "./note-use.js";
import { createObserveInterceptor } from "./observe.js";
import { readHeaderFields } from "./read-header-fields.js";
import { createReadmitInterceptor } from "./readmit.js";
import { createValidateInterceptor } from "./validate.js";

interface InterceptorOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly addressOf: AddressOf;
  readonly readAddressOf: ReadAddressOf;
  readonly rateLimits: RateLimits;
  readonly settings: Settings;
  readonly uses: Uses;
  readonly denials: Denials;
  readonly calls: CallMetrics | undefined;
  readonly tracing: Tracing | undefined;
  readonly log: Logger;
  readonly methods: readonly DescMethod[];
}

/** The interceptors of every call, in order, the outermost first. */
export interface Interceptors {
  readonly observe: Interceptor;
  readonly deadline: Interceptor;
  /** Those that tell by the headers alone whether a call may be made. */
  readonly admission: readonly Interceptor[];
  /** Those of them that tell whether it still may. They count nothing. */
  readonly readmission: readonly Interceptor[];
  /** Lets a caller that may make a call have so many streams. */
  readonly limitStreams: Interceptor;
  /** Those that need the message. */
  readonly inspection: readonly Interceptor[];
}

export function createInterceptors(options: InterceptorOptions): Interceptors {
  const { store, keyring, addressOf, readAddressOf, rateLimits, settings, uses, log, methods } =
    options;
  const { keyHeader, requestTimeout, limits } = settings;
  const authenticate = createAuthenticateInterceptor(
    createIdentify(store, keyring, settings.grantPolicy),
    keyHeader,
    rateLimits,
  );
  const checkPlace = createCheckPlaceInterceptor(addressOf);
  const authorize = createAuthorizeInterceptor(methods);
  const readmission = [authenticate, checkPlace, authorize];
  return {
    observe: createObserveInterceptor(log, options),
    deadline: createDeadlineInterceptor(requestTimeout),
    admission: [
      authenticate,
      checkPlace,
      // Whoever uses a key from where it may not be used takes nothing of what its owner may do.
      createLimitRateInterceptor(rateLimits),
      createNoteUseInterceptor(uses),
      authorize,
    ],
    readmission,
    limitStreams: createLimitStreamsInterceptor(limits.streams, readAddressOf),
    inspection: [
      readHeaderFields,
      createValidateInterceptor(limits.listItems),
      // After validation, which may take several turns.
      createReadmitInterceptor(readmission, methods),
    ],
  };
}
