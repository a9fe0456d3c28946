import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Event, EventService } from "../../../gen/latchkey/v1/event_service_pb.js";
import { hour } from "../../../src/lib/time-units.js";

export interface OwnDenials {
  /** Newest first. Each stands for `count` refused calls. */
  readonly events: readonly Event[];
  /** The number of refused calls. */
  readonly count: number;
  /** Whether all were read. */
  readonly isComplete: boolean;
}

/** A tenant writes at most 720 events about denials per hour and process. */
const maxPages = 20;

interface ReadOptions {
  /** By the clock of the service. */
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Reads the refused calls of an application and its sessions in the last hour. */
export async function readOwnDenials(
  client: Pick<Client<typeof EventService>, "listEvents">,
  application: string,
  { now, signal }: ReadOptions,
): Promise<OwnDenials> {
  const request = {
    principal: application,
    kind: ["access.denied"],
    since: timestampFromMs(now - hour),
    size: 100,
  };
  const events: Event[] = [];
  let start: string | undefined;
  let pages = 0;
  do {
    const page = { ...request, ...(start !== undefined && { start }) };
    const { data, pagination } = await client.listEvents(page, { signal });
    events.push(...data.filter((event) => isOwn(event, application)));
    start = pagination?.next;
    pages++;
  } while (start !== undefined && pages < maxPages);
  return {
    events,
    count: events.reduce((sum, { count = 1 }) => sum + count, 0),
    isComplete: start === undefined,
  };
}

/** Whether the call was made with a key of the application. A refused key is only the target. */
function isOwn({ actor, target }: Event, application: string): boolean {
  return (actor ?? target)?.applicationId === application;
}
