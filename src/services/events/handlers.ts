import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  CredentialStateSchema,
  EventSchema,
  type EventService,
  type ListEventsRequest,
  type WatchEventsRequest,
  type WatchEventsResponseSchema,
} from "../../../gen/latchkey/v1/event_service_pb.js";
import type { CursorSealer } from "../../auth/cursor-sealing.js";
import { callerOf, callOf } from "../../call.js";
import { createConverter } from "../../contract/message-converter.js";
import type { Dependencies } from "../../dependencies.js";
import { eventNotFound, Problem } from "../../errors.js";
import { waitForTime } from "../../lib/event-loop.js";
import { formatAddress } from "../../lib/networks.js";
import {
  type CredentialState,
  type EventFilter,
  type EventRecord,
  type EventStore,
  matchesEventFilter,
  type Principal,
} from "../../store/port/events.js";
import { readAddress } from "../../validation/address.js";
import { fromTimestamp, toTimestamp } from "../../validation/time.js";
import {
  cursorScopeOf,
  defaultPageSize,
  describeTotal,
  maxCounted,
  sealCursors,
  totalOf,
} from "../pagination.js";
import { toAccessRules } from "../rules.js";
import { createOpenStream, createResumeTokens, heartbeatOf } from "../streams.js";

export function createEventHandlers({
  store,
  createSealer,
  stopping,
}: Pick<Dependencies, "store" | "createSealer" | "stopping">): ServiceImpl<typeof EventService> {
  const { events } = store;
  const cursors = sealCursors(createSealer, "events");
  const resumeTokens = createResumeTokens(createSealer, "events");
  const stream = createOpenStream(stopping);

  return {
    async listEvents(request, context) {
      const { tenantId } = callerOf(context).application;
      const { size = defaultPageSize, start, since, until } = request;
      const range = {
        tenantId,
        ...readFilter(request),
        since: readLimit(since, "since"),
        until: readLimit(until, "until"),
      };
      const scope = cursorScopeOf(context, request);
      const after = start === undefined ? undefined : cursors.open(scope, start);
      const { items, next } = await events.list({ ...range, size, after }, context.signal);
      const total = await totalOf(request, items, next !== undefined, () =>
        events.count(range, maxCounted, context.signal),
      );
      // Many pages may be ready at once, and converting one takes long.
      const pause = waitForTime(tenantId);
      if (pause) {
        await pause;
      }
      return {
        pagination: {
          pageSize: size,
          ...describeTotal(total, size),
          ...(next !== undefined && { next: cursors.seal(scope, next) }),
        },
        data: items.map(toEvent),
      };
    },

    async getEvent(request, context) {
      const { tenantId } = callerOf(context).application;
      const id = request.id.toLowerCase();
      const found = await events.find(tenantId, id, context.signal);
      if (!found) {
        throw eventNotFound(id);
      }
      return toEvent(found);
    },

    watchEvents(request, context) {
      const call = callOf(context);
      const { tenantId } = call.caller.application;
      const reauthorize = () => call.reauthorize();
      return stream(context, (signal) =>
        watchEvents({ events, resumeTokens, tenantId, request, reauthorize, signal }),
      );
    },
  };
}

/** A bound of a time range. No stored event is older than 1970. */
function readLimit(timestamp: Timestamp | undefined, field: string): number | undefined {
  return timestamp && Math.max(0, fromTimestamp(timestamp, field));
}

/** The filter of a request, with ids in lower case and addresses in canonical form, as stored. */
function readFilter(request: ListEventsRequest | WatchEventsRequest): EventFilter {
  const { principal, target, actor, kind, requestId, address, method, reason } = request;
  return {
    principal: principal?.toLowerCase(),
    target: target?.toLowerCase(),
    actor: actor?.toLowerCase(),
    kinds: kind.length > 0 ? kind : undefined,
    requestId,
    address: address === undefined ? undefined : canonicalAddress(address),
    method,
    reason,
  };
}

/** The canonical form of an address. Throws if it is invalid. */
function canonicalAddress(text: string): string {
  const address = readAddress(text);
  if (address instanceof Problem) {
    throw address;
  }
  return formatAddress(address);
}

interface WatchOptions {
  readonly events: Pick<EventStore, "follow">;
  readonly resumeTokens: CursorSealer;
  readonly tenantId: string;
  readonly request: WatchEventsRequest;
  /** Throws if the caller has lost its access. */
  readonly reauthorize: () => Promise<void>;
  readonly signal: AbortSignal;
}

/** Streams the events of a tenant until the caller loses access or the signal aborts. */
async function* watchEvents(
  options: WatchOptions,
): AsyncGenerator<MessageInitShape<typeof WatchEventsResponseSchema>> {
  const { events, resumeTokens, tenantId, request, reauthorize, signal } = options;
  const { resumeToken } = request;
  const heartbeat = heartbeatOf(request);
  const after = resumeToken === undefined ? undefined : resumeTokens.open(tenantId, resumeToken);
  const filter = readFilter(request);

  for await (const batch of events.follow({ tenantId, after, heartbeat, signal })) {
    await reauthorize();
    // An event wakes all watchers at once. Converting a large one takes long.
    const pause = waitForTime(tenantId);
    if (pause) {
      await pause;
    }
    // A batch without matching events serves as a heartbeat.
    const matching = batch.events.filter((event) => matchesEventFilter(event, filter));
    yield {
      events: matching.map(toSharedEvent),
      reset: batch.missed,
      resumeToken: resumeTokens.seal(tenantId, batch.position),
    };
  }
  signal.throwIfAborted();
}

const convertEvent = createConverter(EventSchema, { values: { time: toTimestamp } });

function toEvent(record: EventRecord): MessageInitShape<typeof EventSchema> {
  const { actor, target, before, after } = record;
  return {
    ...convertEvent(record),
    ...(actor && isEmpty(actor) && { actor: undefined }),
    ...(isEmpty(target) && { target: undefined }),
    ...(before && { before: toState(before) }),
    ...(after && { after: toState(after) }),
  };
}

const messages = new WeakMap<EventRecord, ReturnType<typeof toEvent>>();

/** The message of an event, created once for all watchers, so that it is encoded once too. */
function toSharedEvent(record: EventRecord): ReturnType<typeof toEvent> {
  const message = messages.get(record) ?? toEvent(record);
  messages.set(record, message);
  return message;
}

function isEmpty(principal: Principal): boolean {
  return Object.values(principal).every((id) => id === undefined);
}

const convertState = createConverter(CredentialStateSchema, { values: { time: toTimestamp } });

function toState(state: CredentialState): MessageInitShape<typeof CredentialStateSchema> {
  const { disabled, rules } = state;
  const status = disabled ? "disabled" : "enabled";
  return {
    ...convertState(state),
    rules: toAccessRules(rules),
    ...(disabled !== undefined && { status }),
  };
}
