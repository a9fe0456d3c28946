import type { DescMethod, Message } from "@bufbuild/protobuf";
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import {
  createAuthenticate,
  createFindClaimedOwner,
  createIdentifyCertificate,
} from "../auth/authenticate.js";
import type { AddressOf, ReadAddressOf } from "../auth/caller-address.js";
import type { Keyring } from "../auth/keys.js";
import type { LastUsedTracker } from "../auth/last-used.js";
import type { ReadKey } from "../auth/read-key.js";
import {
  type AuthorizedCall,
  type Call,
  contextValuesOf,
  unauthenticatedContextValuesOf,
} from "../call.js";
import type { Settings } from "../config/settings.js";
import { type MaybePromise, mapMaybePromise } from "../lib/async.js";
import type { ResponseBudget } from "../lib/response-budget.js";
import type { RateLimits } from "../limits/rate-limits.js";
import type { Denials } from "../services/events/denials.js";
import type { Store } from "../store/port/store.js";
import type { ServiceLogger } from "../telemetry/log.js";
import type { CallMetrics } from "../telemetry/metrics/calls.js";
import type { Tracing } from "../telemetry/tracing.js";
import { assertValidRequest } from "../validation/validate.js";
import { createAdmission } from "./admission.js";
import { createCallAuthentication } from "./authenticate.js";
import { createAuthorize } from "./authorize.js";
import { type CallLimit, createCallLimit } from "./call-limit.js";
import { createDeadline, type WithDeadline } from "./deadline.js";
import { readHeaderFields } from "./header-fields.js";
import { createObserve, type Observe } from "./observe.js";
import { createReserveResponse } from "./reserve-response.js";
import { createAssertWithinRestrictions } from "./restrictions.js";
import { createStreamLimit, type StreamLimit } from "./stream-limit.js";
import type { UntrustedForwarding } from "./untrusted-forwarding.js";

/** Reads the message of a call, which may not have arrived yet. */
type Receive = () => MaybePromise<Message>;

/** Runs the handler of a unary call. May run again if the caller changed. */
type Handle<T> = (message: Message, values: ContextValues) => MaybePromise<T>;

/** Calls the handler of a stream, which returns its responses. */
type HandleStream<T> = (values: ContextValues) => Promise<AsyncIterable<T>>;

/** Runs calls: all steps between the transport and the handlers. Fails only with errors that the caller may see. */
export interface Pipeline {
  unary<T>(call: Call, receive: Receive, handle: Handle<T>): MaybePromise<T>;

  stream<T>(call: Call, open: HandleStream<T>): Promise<AsyncIterable<T>>;

  /**
   * Validates the message of a stream with one request, or throws. Handlers of
   * other streams validate each message themselves, so that an invalid one does
   * not end the stream.
   */
  validate(method: DescMethod, message: Message): MaybePromise<void>;
}

export interface Pipelines {
  /** For methods that require a key. */
  readonly authenticated: Pipeline;
  /** For methods that need no key, and for system services. */
  readonly unauthenticated: Pipeline;
}

interface PipelineOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly readKey: ReadKey;
  readonly addressOf: AddressOf;
  readonly readAddressOf: ReadAddressOf;
  readonly rateLimits: RateLimits;
  readonly settings: Settings;
  readonly responseBudget: ResponseBudget;
  readonly lastUsed: LastUsedTracker;
  readonly denials: Denials;
  readonly untrustedForwarding: Pick<UntrustedForwarding, "check">;
  readonly calls: CallMetrics | undefined;
  readonly tracing: Tracing | undefined;
  readonly log: ServiceLogger;
  /** The methods that require a key. */
  readonly methods: readonly DescMethod[];
  /** The methods of the contract that need no key. */
  readonly unauthenticatedMethods: readonly DescMethod[];
}

/** The steps that all calls share. */
interface CommonSteps {
  readonly observe: Observe;
  readonly withDeadline: WithDeadline;
  readonly streamLimit: StreamLimit;
  readonly callLimit: CallLimit;
  readonly validate: Pipeline["validate"];
}

export function createPipelines(options: PipelineOptions): Pipelines {
  const { requestTimeout, limits } = options.settings;
  const steps: CommonSteps = {
    observe: createObserve(options.log, options),
    withDeadline: createDeadline(requestTimeout),
    streamLimit: createStreamLimit(limits.streams, options.readAddressOf),
    callLimit: createCallLimit(limits.calls),
    validate: ({ input }, message) => assertValidRequest(input, message, limits.listItems),
  };
  return {
    authenticated: createAuthenticatedPipeline(steps, options),
    unauthenticated: createUnauthenticatedPipeline(steps, new Set(options.unauthenticatedMethods)),
  };
}

function createAuthenticatedPipeline(
  { observe, withDeadline, streamLimit, callLimit, validate }: CommonSteps,
  {
    store,
    keyring,
    readKey,
    addressOf,
    rateLimits,
    settings,
    lastUsed,
    responseBudget,
    methods,
    untrustedForwarding,
  }: PipelineOptions,
): Pipeline {
  const { keyHeader, bearerKeys, grantPolicy } = settings;
  const authorize = createAuthorize(methods);
  const admission = createAdmission({
    authentication: createCallAuthentication({
      identify: createAuthenticate(store, keyring, grantPolicy),
      identifyCertificate: createIdentifyCertificate(store, settings.gatewayCertificates),
      findClaimedOwner: createFindClaimedOwner(store, keyring),
      readKey,
      keyHeader,
      bearerKeys,
      rateLimits,
    }),
    assertWithinRestrictions: createAssertWithinRestrictions(addressOf),
    rateLimits,
    lastUsed,
    authorize,
    withDeadline,
  });

  const reserveResponse = createReserveResponse(responseBudget);

  function readAndValidate(call: Call, message: Message): MaybePromise<void> {
    readHeaderFields(call, message);
    return validate(call.method, message);
  }

  /** Validates the request, and then waits for the memory for its response. */
  function prepare(admitted: AuthorizedCall, message: Message): MaybePromise<void> {
    const validation = readAndValidate(admitted.call, message);
    return validation instanceof Promise
      ? reserveAfter(validation, admitted, message)
      : reserveResponse(admitted, message);
  }

  async function reserveAfter(
    validation: Promise<void>,
    admitted: AuthorizedCall,
    message: Message,
  ): Promise<void> {
    await validation;
    await reserveResponse(admitted, message);
  }

  return {
    unary(call, receive, handle) {
      untrustedForwarding.check(call);
      const observation = observe(call);
      return observation.unary(() =>
        withDeadline(call.cancellation, () => {
          callLimit.assertCapacity();
          return mapMaybePromise(callLimit.count(admission.admit(call, observation)), (admitted) =>
            // Not counted: other limits apply to calls that wait for their bodies.
            mapMaybePromise(receive(), (message) => {
              callLimit.assertCapacity();
              return callLimit.count(
                mapMaybePromise(prepare(admitted, message), () =>
                  admission.run(admitted, (authorized) => {
                    authorize.request(authorized.caller, call.method, message);
                    return handle(message, contextValuesOf(authorized));
                  }),
                ),
              );
            }),
          );
        }),
      );
    },

    stream(call, open) {
      untrustedForwarding.check(call);
      const observation = observe(call);
      return observation.stream(async () => {
        const admitted = await withDeadline(call.cancellation, () =>
          admission.admit(call, observation),
        );
        return streamLimit.ofCaller(admitted.caller, () => open(contextValuesOf(admitted)));
      });
    },

    validate,
  };
}

/**
 * Runs methods that need no key. The given ones are limited and validated like others. The rest, those of system
 * services, are not, so that probes work under load.
 */
export function createUnauthenticatedPipeline(
  { observe, withDeadline, streamLimit, callLimit, validate }: CommonSteps,
  methods: ReadonlySet<DescMethod> = new Set(),
): Pipeline {
  function run<T>(call: Call, message: Message, handle: Handle<T>): MaybePromise<T> {
    if (!methods.has(call.method)) {
      return handle(message, createContextValues());
    }
    callLimit.assertCapacity();
    return callLimit.count(
      mapMaybePromise(validate(call.method, message), () =>
        handle(message, unauthenticatedContextValuesOf(call)),
      ),
    );
  }

  return {
    unary: (call, receive, handle) =>
      observe(call).unary(() =>
        withDeadline(call.cancellation, () =>
          mapMaybePromise(receive(), (message) => run(call, message, handle)),
        ),
      ),

    stream: (call, open) =>
      observe(call).stream(() =>
        streamLimit.ofNetwork(call.peer, () => open(createContextValues())),
      ),

    validate: () => undefined,
  };
}
