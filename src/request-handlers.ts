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
import { isUnauthenticated } from "./contract/methods.js";
import type { Dependencies } from "./dependencies.js";
import { createIdempotency } from "./idempotency/idempotency.js";
import type { ResponseBudget } from "./lib/response-budget.js";
import { createPipelines } from "./middleware/pipeline.js";
import { createAuthZenHandlers } from "./services/access/authzen/handlers.js";
import { createExtAuthzHandlers } from "./services/access/gateways/ext-authz.js";
import { createForwardAuthHandlers } from "./services/access/gateways/forward-auth.js";
import { createAccessHandlers } from "./services/access/handlers.js";
import { createIntrospectionHandlers } from "./services/access/introspection.js";
import { createApplicationHandlers } from "./services/applications/handlers.js";
import { createEventHandlers } from "./services/events/handlers.js";
import { createKeyHandlers } from "./services/keys/handlers.js";
import { createOverviewHandlers } from "./services/overview/handlers.js";
import { createSessionHandlers } from "./services/sessions/handlers.js";
import type { RequestHandler } from "./transport/http/exchange.js";
import { createRestHandler } from "./transport/rest/handler.js";
import { type Implementation, implement } from "./transport/rpc/methods.js";
import { createRpcHandler } from "./transport/rpc/rpc.js";
import { createSystemEndpoints } from "./transport/system/endpoints.js";
import { createHealthHandlers, type Readiness } from "./transport/system/health.js";
import { createReflectionHandlers } from "./transport/system/reflection.js";
import { createWebPages } from "./transport/system/web-pages.js";

interface HandlersOptions {
  readonly readiness: Readiness;
  readonly responseBudget: ResponseBudget;
  /** Returns the metrics, if the service port serves them. */
  readonly scrape: (() => Promise<Buffer>) | undefined;
}

/** The request handlers in order of precedence. REST is last because it takes every remaining path. */
export function createHandlers(
  dependencies: Dependencies,
  { readiness, responseBudget, scrape }: HandlersOptions,
): RequestHandler[] {
  const { bodyLimit, publicUrl, keyHeader, limits, requestTimeout, hasConsole } =
    dependencies.settings;
  const all = createImplementations(dependencies);
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
    createRpcHandler({
      ...shared,
      pipelines,
      unauthenticatedImplementations: [
        ...unauthenticatedImplementations,
        ...createSystemImplementations(all, readiness, dependencies.stopping),
      ],
      writeTimeoutMs: requestTimeout,
      redactKeys: dependencies.redactKeys,
    }),
    createSystemEndpoints({ readiness, keyHeader, hasConsole, publicUrl, scrape }),
    createWebPages({ keyHeader, hasConsole }),
    createRestHandler({
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

/** The services of the API. */
function createImplementations(dependencies: Dependencies): Implementation[] {
  const withIdempotency = createIdempotency(dependencies.store.responses, dependencies.readKey);
  const serve = <S extends DescService>(service: S, handlers: ServiceImpl<S>) =>
    implement(service, withIdempotency(service, handlers));
  return [
    serve(ApplicationService, createApplicationHandlers(dependencies)),
    serve(SessionService, createSessionHandlers(dependencies)),
    serve(AccessService, createAccessHandlers(dependencies)),
    serve(EventService, createEventHandlers(dependencies)),
    serve(GatewayService, createForwardAuthHandlers(dependencies)),
    serve(Authorization, createExtAuthzHandlers(dependencies)),
    implement(KeyService, createKeyHandlers(dependencies)),
    serve(AuthZenService, createAuthZenHandlers(dependencies)),
    serve(IntrospectionService, createIntrospectionHandlers(dependencies)),
    serve(OverviewService, createOverviewHandlers(dependencies)),
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
