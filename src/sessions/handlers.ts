import type { ServiceImpl } from "@connectrpc/connect";
import type { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";
import type { Settings } from "../config.js";
import type { TrailOf } from "../events/trail.js";
import type { GrantGuard } from "../grants.js";
import type { Keyring } from "../keys.js";
import type { RateLimits } from "../rate-limits/rate-limits.js";
import type { SealPlaces } from "../sealed-places.js";
import type { Clock, Store } from "../store/store.js";
import { createManageHandlers } from "./manage-handlers.js";
import { createOpenHandlers } from "./open-handlers.js";

export interface SessionHandlerOptions {
  readonly store: Store;
  readonly keyring: Keyring;
  readonly grantGuard: GrantGuard;
  readonly trailOf: TrailOf;
  readonly rateLimits: Pick<RateLimits, "noteRefusedSession">;
  readonly clock: Clock;
  readonly sealPlaces: SealPlaces;
  readonly settings: Settings;
}

export type SessionHandlers = ServiceImpl<typeof SessionService>;

export function createSessionHandlers(options: SessionHandlerOptions): SessionHandlers {
  return { ...createOpenHandlers(options), ...createManageHandlers(options) };
}
