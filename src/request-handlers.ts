import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { Authorization } from "../gen/envoy/service/auth/v3/external_auth_pb.js";
import { Health } from "../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { AccessService } from "../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../gen/latchkey/v1/application_service_pb.js";
import { AuthZenService } from "../gen/latchkey/v1/authzen_service_pb.js";
import { EventService } from "../gen/latchkey/v1/event_service_pb.js";
import { GatewayService } from "../gen/latchkey/v1/gateway_service_pb.js";
import { IntrospectionService } from "../gen/latchkey/v1/introspection_service_pb.js";
import { KeyService } from "../gen/latchkey/v1/key_service_pb.js";
import { OverviewService } from "../gen/latchkey/v1/overview_service_pb.js";
import { SessionService } from "../gen/latchkey/v1/session_service_pb.js";
import {
  type AddressOf,
  createForwardedAddressOf,
  type ReadAddressOf,
} from "./auth/caller-address.js";
import { createCursorSealerFactory } from "./auth/cursor-sealing.js";
import { createGrantGuard } from "./auth/grants.js";
import type { Keyring } from "./auth/keys.js";
import type { LastUsedTracker } from "./auth/last-used.js";
import type { ReadKey } from "./auth/read-key.js";
import type { Settings } from "./config/settings.js";
import { isUnauthenticated } from "./contract/methods.js";
import type { Dependencies } from "./dependencies.js";
import { createIdempotency } from "./idempotency/idempotency.js";
import type { ResponseBudget } from "./lib/response-budget.js";
import type { RateLimits } from "./limits/rate-limits.js";
import { createPipelines } from "./middleware/pipeline.js";
import type { UntrustedForwarding } from "./middleware/untrusted-forwarding.js";
import { createAuthZenHandlers } from "./services/access/authzen/handlers.js";
import { createRunBatch } from "./services/access/batch.js";
import { createChecks } from "./services/access/check.js";
import { createExtAuthzHandlers } from "./services/access/gateways/ext-authz.js";
import { createForwardAuthHandlers } from "./services/access/gateways/forward-auth.js";
import { createGatewayCheck } from "./services/access/gateways/gateway-check.js";
import type { Routes } from "./services/access/gateways/routes.js";
import { createAccessHandlers } from "./services/access/handlers.js";
import { createIntrospectionHandlers } from "./services/access/introspection.js";
import { createSubjects } from "./services/access/subjects.js";
import { createApplicationHandlers } from "./services/applications/handlers.js";
import { createAudit } from "./services/events/audit.js";
import { createEventHandlers } from "./services/events/handlers.js";
import { createKeyHandlers } from "./services/keys/handlers.js";
import { createOverviewHandlers } from "./services/overview/handlers.js";
import { createSessionHandlers } from "./services/sessions/handlers.js";
import type { Clock, Store } from "./store/port/store.js";
import type { ServiceLogger } from "./telemetry/log.js";
import type { RequestHandler } from "./transport/http/exchange.js";
import { createGateway } from "./transport/rest/gateway.js";
import { type Implementation, implement } from "./transport/rpc/methods.js";
import { createRpcHandlers } from "./transport/rpc/rpc.js";
import { createSystemEndpoints } from "./transport/system/endpoints.js";
import { createHealthHandlers, type Readiness } from "./transport/system/health.js";
import { createReflectionHandlers } from "./transport/system/reflection.js";
import { createWebPages } from "./transport/system/web-pages.js";

interface HandlersOptions {
  readonly readiness: Readiness;
  /** Aborts when the server stops, which ends streams. */
  readonly stopping: AbortSignal;
  readonly responseBudget: ResponseBudget;
  /** Returns the metrics, if the service port serves them. */
  readonly scrape: (() => Promise<Buffer>) | undefined;
}

/** The request handlers in order of precedence. REST is last because it takes every remaining path. */
export function createHandlers(
  dependencies: Dependencies,
  { readiness, stopping, responseBudget, scrape }: HandlersOptions,
): RequestHandler[] {
  const { bodyLimit, publicUrl, keyHeader, limits, requestTimeout, hasConsole } =
    dependencies.settings;
  const all = createImplementations({ ...dependencies, stopping });
  const unauthenticatedImplementations = all.filter(({ service }) => isUnauthenticated(service));
  const implementations = all.filter((it) => !unauthenticatedImplementations.includes(it));
  const pipelines = createPipelines({
    ...dependencies,
    responseBudget,
    methods: methodsOf(implementations),
    unauthenticatedMethods: methodsOf(unauthenticatedImplementations),
  });
  const shared = {
    implementations,
    bodyLimit,
    jsonDepth: limits.jsonDepth,
  };
  return [
    ...createRpcHandlers({
      ...shared,
      pipelines,
      unauthenticatedImplementations: [
        ...unauthenticatedImplementations,
        ...createSystemImplementations(all, readiness, stopping),
      ],
      writeTimeoutMs: requestTimeout,
      redactKeys: dependencies.redactKeys,
    }),
    createSystemEndpoints({ readiness, keyHeader, hasConsole, publicUrl, scrape }),
    createWebPages({ keyHeader, hasConsole }),
    createGateway({
      ...shared,
      unauthenticatedImplementations,
      pipelines,
      listItems: limits.listItems,
    }),
  ];
}

function methodsOf(implementations: readonly Implementation[]): DescMethod[] {
  return implementations.flatMap(({ service }) => service.methods);
}

interface ImplementationsOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly readKey: ReadKey;
  readonly addressOf: AddressOf;
  readonly readAddressOf: ReadAddressOf;
  readonly lastUsed: LastUsedTracker;
  readonly rateLimits: RateLimits;
  readonly routes: Routes;
  readonly untrustedForwarding: UntrustedForwarding;
  readonly clock: Clock;
  readonly settings: Settings;
  readonly log: ServiceLogger;
  /** Aborts when the server stops, which ends streams. */
  readonly stopping: AbortSignal;
}

/** The services of the API. */
function createImplementations(options: ImplementationsOptions): Implementation[] {
  const { store, readKey, addressOf, rateLimits, settings, clock } = options;
  const { keyHeader, grantPolicy, trustedProxies } = settings;
  const subjects = createSubjects({ ...options, grantPolicy });
  const checks = createChecks({ store, subjects });
  const handlerOptions = {
    ...options,
    checks,
    // Shared, as it limits the batches of a tenant.
    runBatch: createRunBatch({ checks, rateLimits }),
    subjects,
    grantGuard: createGrantGuard(settings.grantPolicy),
    audit: createAudit(addressOf),
    createSealer: createCursorSealerFactory({
      peppers: settings.peppers,
      storeId: store.id,
      clock,
    }),
  };
  const gatewayOptions = {
    check: createGatewayCheck({ ...options, checks, keyHeader }),
    addressOf,
    forwardedAddressOf: createForwardedAddressOf(trustedProxies),
    keyHeader,
  };
  const withIdempotency = createIdempotency(store.responses, readKey);
  const serve = <S extends DescService>(service: S, handlers: ServiceImpl<S>) =>
    implement(service, withIdempotency(service, handlers));
  return [
    serve(ApplicationService, createApplicationHandlers(handlerOptions)),
    serve(SessionService, createSessionHandlers(handlerOptions)),
    serve(AccessService, createAccessHandlers(handlerOptions)),
    serve(EventService, createEventHandlers(handlerOptions)),
    serve(GatewayService, createForwardAuthHandlers(gatewayOptions)),
    serve(Authorization, createExtAuthzHandlers(gatewayOptions)),
    implement(KeyService, createKeyHandlers(options)),
    serve(AuthZenService, createAuthZenHandlers(handlerOptions)),
    serve(IntrospectionService, createIntrospectionHandlers(handlerOptions)),
    serve(OverviewService, createOverviewHandlers(handlerOptions)),
  ];
}

/** Health and reflection, which need no key. */
function createSystemImplementations(
  implementations: readonly Implementation[],
  readiness: Readiness,
  stopping: AbortSignal,
): Implementation[] {
  const services = implementations.map(({ service }) => service);
  const names = services.map(({ typeName }) => typeName);
  const reflected = [...services, Health, ServerReflection, ServerReflectionAlpha];
  const reflection = createReflectionHandlers(reflected, stopping);
  return [
    implement(Health, createHealthHandlers(readiness, names)),
    implement(ServerReflection, reflection),
    // The two versions differ only in their package name.
    { service: ServerReflectionAlpha, handlers: reflection as Implementation["handlers"] },
  ];
}
