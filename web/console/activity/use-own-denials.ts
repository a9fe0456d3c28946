import { createConnectQueryKey, useTransport } from "@connectrpc/connect-query";
import { useQuery } from "@tanstack/react-query";
import { EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { useClient } from "../sign-in/connection.js";
import { serviceNow } from "../ui/service-clock.js";
import { type OwnDenials, readOwnDenials } from "./own-denials.js";

const none: OwnDenials = { events: [], count: 0, isComplete: true };

/** Live events refresh the list. The interval drops denials that are older than an hour. */
const refetchInterval = 30_000;

/** The refused calls of an application and its sessions in the last hour. */
export function useOwnDenials(application: string): OwnDenials {
  const transport = useTransport();
  const client = useClient(EventService);
  const { listEvents } = EventService.method;
  const input = { principal: application, kind: ["access.denied"] };
  const { data } = useQuery({
    queryKey: [
      ...createConnectQueryKey({ schema: listEvents, input, transport, cardinality: "finite" }),
      "own denials",
    ],
    queryFn: ({ signal }) => readOwnDenials(client, application, { now: serviceNow(), signal }),
    refetchInterval,
  });
  return data ?? none;
}
