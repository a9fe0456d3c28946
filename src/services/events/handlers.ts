import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  CredentialStateSchema,
  EventPartySchema,
  EventSchema,
  EventService,
  WatchEventsRequest,
  WatchEventsResponseSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import { callerOf, readmissionOf } from "../../auth/caller.js";
import { showGrants } from "../../auth/grants.js";
import type { SealedPlaces, SealPlaces } from "../../auth/sealing.js";
import {
  type CredentialState,
  type EventFilter,
  type EventRecord,
  type EventStore,
  isWanted,
  type Party,
} from "../../store/port/events.js";
import type { Store } from "../../store/port/store.js";
import { fromTimestamp, toTimestamp } from "../../validation/time.js";
import { createResumeTokens, defaultPageSize, sealCursors } from "../cursors.js";
import { createOpenStream, defaultHeartbeat } from "../streams.js";

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

/** The filter in a request, with ids as they are stored. */
function readFilter({ target, actor, kind }: EventFilter): EventFilter {
  return { target: target?.toLowerCase(), actor: actor?.toLowerCase(), kind };
}

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
async function* watchEvents(
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

/** An event as answers show it. */
function toEvent(record: EventRecord): MessageInitShape<typeof EventSchema> {
  const { actor, target, before, after } = record;
  return {
    id: record.id,
    kind: record.kind,
    at: toTimestamp(record.at),
    outcome: record.outcome,
    actor: actor && showParty(actor),
    target: showParty(target),
    before: before && showState(before),
    after: after && showState(after),
    reason: record.reason,
    method: record.method,
    requestId: record.requestId,
    address: record.address,
    count: record.count,
    endsAt: toTimestamp(record.endsAt),
  };
}

/** Nobody is not shown. */
function showParty({
  applicationId,
  sessionId,
  keyId,
}: Party): MessageInitShape<typeof EventPartySchema> | undefined {
  const ids = { applicationId, sessionId, keyId };
  return Object.values(ids).some((id) => id !== undefined) ? ids : undefined;
}

function showState(state: CredentialState): MessageInitShape<typeof CredentialStateSchema> {
  const { name, disabled, allowedOrigins = [], allowedCidrs = [], expiresAt, sessionQuota } = state;
  return {
    name,
    ...showGrants(state),
    status: disabled === undefined ? undefined : disabled ? "disabled" : "enabled",
    allowedOrigins: [...allowedOrigins],
    allowedCidrs: [...allowedCidrs],
    expiresAt: toTimestamp(expiresAt),
    sessionQuota,
  };
}
