import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  WatchEventsRequest,
  WatchEventsResponseSchema,
} from "../../gen/latchkey/v1/event_service_pb.js";
import { defaultHeartbeat } from "../heartbeat.js";
import type { SealedPlaces } from "../sealed-places.js";
import { isWanted } from "../store/event-filter.js";
import type { EventStore } from "../store/events.js";
import { readFilter } from "./filter.js";
import { toEvent } from "./to-event.js";

interface WatchOptions {
  readonly events: Pick<EventStore, "follow">;
  readonly resumeTokens: SealedPlaces;
  readonly tenantId: string;
  readonly request: WatchEventsRequest;
  /** Throws where the caller may no longer watch. */
  readonly readmit: () => Promise<void>;
  readonly signal: AbortSignal;
}

/** Tells what happens in a tenant, for as long as the caller may know, and ends with the reason of the signal. */
export async function* watchEvents(
  options: WatchOptions,
): AsyncGenerator<MessageInitShape<typeof WatchEventsResponseSchema>> {
  const { events, resumeTokens, tenantId, request, readmit, signal } = options;
  const { resumeToken, heartbeatMs: beat = defaultHeartbeat } = request;
  const after = resumeToken === undefined ? undefined : resumeTokens.open(tenantId, resumeToken);
  const filter = readFilter(request);

  for await (const batch of events.follow({ tenantId, after, beat, signal })) {
    await readmit();
    // One that holds nothing of what is asked for is a heartbeat.
    const wanted = batch.events.filter((event) => isWanted(event, filter));
    yield {
      events: wanted.map(toEvent),
      reset: batch.missed,
      resumeToken: resumeTokens.seal(tenantId, batch.position),
    };
  }
  signal.throwIfAborted();
}
