import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { AccessService } from "../../gen/latchkey/v1/access_service_pb.js";
import { ApplicationService } from "../../gen/latchkey/v1/application_service_pb.js";
import { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { KeyService } from "../../gen/latchkey/v1/key_service_pb.js";
import { OverviewService } from "../../gen/latchkey/v1/overview_service_pb.js";
import { SessionService } from "../../gen/latchkey/v1/session_service_pb.js";

/** A typed client of each service. */
export interface LatchkeyClient {
  readonly applications: Client<typeof ApplicationService>;
  readonly sessions: Client<typeof SessionService>;
  readonly access: Client<typeof AccessService>;
  readonly events: Client<typeof EventService>;
  readonly overview: Client<typeof OverviewService>;
  readonly keys: Client<typeof KeyService>;
}

/** Creates a client on a transport of any protocol. */
export function createClientOn(transport: Transport): LatchkeyClient {
  return {
    applications: createClient(ApplicationService, transport),
    sessions: createClient(SessionService, transport),
    access: createClient(AccessService, transport),
    events: createClient(EventService, transport),
    overview: createClient(OverviewService, transport),
    keys: createClient(KeyService, transport),
  };
}
