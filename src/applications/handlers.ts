import type { ServiceImpl } from "@connectrpc/connect";
import type { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { type ChangeApplication, createChangeApplication } from "../change-application.js";
import type { TrailOf } from "../events/trail.js";
import type { GrantGuard } from "../grants.js";
import type { Keyring } from "../keys.js";
import type { SealPlaces } from "../sealed-places.js";
import type { Clock, Store } from "../store/store.js";
import { createChangeHandlers } from "./change-handlers.js";
import { createKeyHandlers } from "./key-handlers.js";
import { createReadHandlers } from "./read-handlers.js";

export interface ApplicationHandlerOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly grantGuard: GrantGuard;
  readonly trailOf: TrailOf;
  readonly clock: Clock;
  readonly sealPlaces: SealPlaces;
}

/** What handlers that change applications need as well. */
export interface ChangingOptions extends ApplicationHandlerOptions {
  readonly changeApplication: ChangeApplication;
}

export type ApplicationHandlers = ServiceImpl<typeof ApplicationService>;

export function createApplicationHandlers(options: ApplicationHandlerOptions): ApplicationHandlers {
  const { trailOf, store } = options;
  const { applications } = store;
  const changing = {
    ...options,
    changeApplication: createChangeApplication({ applications, trailOf }),
  };
  return {
    ...createReadHandlers(options),
    ...createChangeHandlers(changing),
    ...createKeyHandlers(changing),
  };
}
