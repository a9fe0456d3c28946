import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { EventService } from "../../gen/latchkey/v1/event_service_pb.js";
import { callerOf, readmissionOf } from "../caller.js";
import { defaultPageSize, sealCursors } from "../cursor.js";
import { fromTimestamp } from "../moments.js";
import { createOpenStream } from "../open-stream.js";
import { createResumeTokens } from "../resume-token.js";
import type { SealPlaces } from "../sealed-places.js";
import type { Store } from "../store/store.js";
import { readFilter } from "./filter.js";
import { toEvent } from "./to-event.js";
import { watchEvents } from "./watch.js";

interface EventHandlerOptions {
  readonly store: Store;
  readonly sealPlaces: SealPlaces;
  /** Given when the server stops: it ends streams. */
  readonly stopping: AbortSignal;
}

export function createEventHandlers({
  store,
  sealPlaces,
  stopping,
}: EventHandlerOptions): ServiceImpl<typeof EventService> {
  const { events } = store;
  const cursors = sealCursors(sealPlaces, "events");
  const resumeTokens = createResumeTokens(sealPlaces, "events");
  const stream = createOpenStream(stopping);

  return {
    async listEvents(request, context) {
      const { tenantId } = callerOf(context).application;
      const { size = defaultPageSize, start, since, until } = request;
      const query = {
        tenantId,
        ...readFilter(request),
        since: readLimit(since, "since"),
        until: readLimit(until, "until"),
        size,
        after: start === undefined ? undefined : cursors.open(tenantId, start),
      };
      const { items, next } = await events.list(query, context.signal);
      return {
        pagination: {
          pageSize: size,
          ...(next !== undefined && { next: cursors.seal(tenantId, next) }),
        },
        data: items.map(toEvent),
      };
    },

    watchEvents(request, context) {
      const { tenantId } = callerOf(context).application;
      const readmit = readmissionOf(context);
      return stream(context, (signal) =>
        watchEvents({ events, resumeTokens, tenantId, request, readmit, signal }),
      );
    },
  };
}

/** A limit of a span of time. Nothing that is kept happened before 1970. */
function readLimit(timestamp: Timestamp | undefined, field: string): number | undefined {
  return timestamp && Math.max(0, fromTimestamp(timestamp, field));
}
