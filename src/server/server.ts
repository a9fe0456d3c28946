import { setMaxListeners } from "node:events";
import type { AddressInfo } from "node:net";
import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Logger } from "pino";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import { createAccessHandlers } from "../access/handlers.js";
import { createApplicationHandlers } from "../applications/handlers.js";
import { createAddressOf } from "../caller-address.js";
import type { Settings } from "../config.js";
import { createDenials } from "../events/denials.js";
import { createEventHandlers } from "../events/handlers.js";
import { createTrailOf } from "../events/trail.js";
import { createWarnings } from "../events/warnings.js";
import { createGrantGuard } from "../grants.js";
import { createInterceptors } from "../interceptors/interceptors.js";
import { createKeyring } from "../keys.js";
import { createReplay } from "../replay/replay.js";
import { createSessionHandlers } from "../sessions/handlers.js";
import type { Clock, Store } from "../store/store.js";
import { createUses } from "../uses.js";
import { createCors } from "./cors.js";
import { createFront } from "./front.js";
import { createHealthHandlers } from "./health.js";
import { type Implementation, implement } from "./implementation.js";
import { createListener } from "./listener.js";
import { createPages } from "./pages.js";
import { createReadiness, type Readiness } from "./readiness.js";
import { createReflectionHandlers } from "./reflection.js";
import { createGateway } from "./rest/gateway.js";
import { createRpcDoors } from "./rpc-doors.js";

interface ServerOptions {
  readonly store: Store;
  readonly settings: Settings;
  readonly log: Logger;
  readonly clock?: Clock;
  /** Milliseconds after which the uses of keys are written at the latest. */
  readonly usesInterval?: number;
}

export interface LatchkeyServer {
  /** Starts to serve, and answers where. */
  listen(): Promise<AddressInfo>;

  /** Stops accepting, finishes what is in flight within the grace of the settings. The store stays open. */
  close(): Promise<void>;
}

/** Creates a server that is not started yet. A mistake in the contract throws here. */
export function createServer({
  store,
  settings,
  log,
  clock = Date.now,
  usesInterval,
}: ServerOptions): LatchkeyServer {
  const keyring = createKeyring(settings.peppers, settings);
  const grantGuard = createGrantGuard(settings.grantPolicy);
  const uses = createUses({ applications: store.applications, clock, interval: usesInterval });
  const addressOf = createAddressOf(settings.trustedProxies);
  const trailOf = createTrailOf(addressOf);
  const { keyHeader } = settings;
  const denials = createDenials({ store, keyring, addressOf, keyHeader, log });
  const warnings = createWarnings({ events: store.events, log });
  const stopping = new AbortController();
  // Every stream listens for it.
  setMaxListeners(0, stopping.signal);
  const handlerOptions = {
    ...{ store, keyring, grantGuard, trailOf, uses, clock, settings },
    stopping: stopping.signal,
  };
  const replay = createReplay(store.answers, keyHeader);
  const serve = <S extends DescService>(service: S, handlers: ServiceImpl<S>) =>
    implement(service, replay(service, handlers));
  const implementations = [
    serve(ApplicationService, createApplicationHandlers(handlerOptions)),
    serve(SessionService, createSessionHandlers(handlerOptions)),
    serve(AccessService, createAccessHandlers(handlerOptions)),
    serve(EventService, createEventHandlers(handlerOptions)),
  ];
  const methods = implementations.flatMap(({ service }) => service.methods);
  const interceptors = createInterceptors({
    store,
    keyring,
    addressOf,
    settings,
    uses,
    denials,
    log,
    methods,
  });
  const readiness = createReadiness(store, stopping.signal);

  const rpcDoors = createRpcDoors({
    implementations,
    openImplementations: createOpenImplementations(implementations, readiness, stopping.signal),
    interceptors,
    bodyLimit: settings.bodyLimit,
    patience: settings.requestTimeout,
  });
  const pages = createPages(readiness, settings.keyHeader);
  const gateway = createGateway({
    implementations,
    interceptors,
    bodyLimit: settings.bodyLimit,
  });
  const front = createFront({
    cors: createCors(settings.corsOrigins, settings.keyHeader),
    doors: [...rpcDoors, pages, gateway],
    log,
    isStopping: () => stopping.signal.aborted,
  });
  const listener = createListener({ onExchange: front, tls: settings.tls });

  return {
    async listen() {
      const address = await listener.listen(settings.port, settings.host);
      warnings.start();
      return address;
    },
    async close() {
      stopping.abort();
      await listener.close(settings.shutdownGrace);
      await Promise.all([uses.close(), denials.close(), warnings.close()]);
    },
  };
}

/** The services about the server itself: health, and reflection on all services. */
function createOpenImplementations(
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
    // The two versions of the service differ only in the name of their package.
    { service: ServerReflectionAlpha, handlers: reflection as Implementation["handlers"] },
  ];
}
