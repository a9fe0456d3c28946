import type { DescService } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { Health } from "../../gen/grpc/health/v1/health_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import { createAccessHandlers } from "../access/handlers.js";
import { createApplicationHandlers } from "../applications/handlers.js";
import type { AddressOf } from "../caller-address.js";
import type { Settings } from "../config.js";
import { createEventHandlers } from "../events/handlers.js";
import { createTrailOf } from "../events/trail.js";
import { createGrantGuard } from "../grants.js";
import type { Keyring } from "../keys.js";
import type { RateLimits } from "../rate-limits/rate-limits.js";
import { createReplay } from "../replay/replay.js";
import { createSealPlaces } from "../sealed-places.js";
import { createSessionHandlers } from "../sessions/handlers.js";
import type { Clock, Store } from "../store/store.js";
import type { Uses } from "../uses.js";
import { createHealthHandlers } from "./health.js";
import { type Implementation, implement } from "./implementation.js";
import type { Readiness } from "./readiness.js";
import { createReflectionHandlers } from "./reflection.js";

interface ImplementationsOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly addressOf: AddressOf;
  readonly uses: Uses;
  readonly rateLimits: RateLimits;
  readonly clock: Clock;
  readonly settings: Settings;
  /** Given when the server stops: it ends streams. */
  readonly stopping: AbortSignal;
}

/** The services of the contract. */
export function createImplementations(options: ImplementationsOptions): Implementation[] {
  const { store, addressOf, settings, clock } = options;
  const handlerOptions = {
    ...options,
    grantGuard: createGrantGuard(settings.grantPolicy),
    trailOf: createTrailOf(addressOf),
    sealPlaces: createSealPlaces({ peppers: settings.peppers, storeId: store.id, clock }),
  };
  const replay = createReplay(store.answers, settings.keyHeader);
  const serve = <S extends DescService>(service: S, handlers: ServiceImpl<S>) =>
    implement(service, replay(service, handlers));
  return [
    serve(ApplicationService, createApplicationHandlers(handlerOptions)),
    serve(SessionService, createSessionHandlers(handlerOptions)),
    serve(AccessService, createAccessHandlers(handlerOptions)),
    serve(EventService, createEventHandlers(handlerOptions)),
  ];
}

/** The services about the server itself: health, and reflection on all services. */
export function createOpenImplementations(
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
