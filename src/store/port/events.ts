import {
  type CredentialStateRecord,
  type EventRecord as EventMessage,
  EventRecordSchema,
  type PrincipalRecord,
} from "../../../gen/latchkey/store/v1/records_pb.js";
import { createConverter, type Plain } from "../../contract/message-converter.js";
import { day } from "../../lib/time-units.js";
import { expiredRetention } from "./records.js";

export interface FollowOptions {
  readonly tenantId: string;
  /** The position of an earlier batch of the same data. */
  readonly after?: string | undefined;
  readonly heartbeat: number;
  readonly signal: AbortSignal;
}

/** The audit log of a tenant. The operator sets its retention. */
export interface EventStore {
  /** Adds events that are not part of a change of a record. */
  add(events: readonly NewEvent[]): Promise<void>;

  /**
   * Lists events of a tenant, newest first. Large events make a page smaller
   * than requested, which bounds its memory. If few events match, a page may be
   * empty although more follow, which bounds its time.
   * Throws the reason of the signal when it aborts.
   */
  list(query: EventQuery, signal?: AbortSignal): Promise<EventPage>;

  /**
   * Counts the events that match, or returns `undefined` if more than `limit`, or
   * fewer but large ones, must be read. Aborts like {@link list}.
   */
  count(range: EventRange, limit: number, signal?: AbortSignal): Promise<number | undefined>;

  /** Finds an event of a tenant. Aborts like {@link list}. */
  find(tenantId: string, id: string, signal?: AbortSignal): Promise<EventRecord | undefined>;

  /**
   * Follows the events of a tenant from a position or from the first read.
   * Yields a batch at once, then one with each event, and an empty one after
   * `heartbeat` milliseconds without events. Each event is reported once, in the
   * order in which they took effect. If the position is too old, the next batch
   * is marked `missed`. Returns when the signal aborts.
   */
  follow(options: FollowOptions): AsyncIterable<EventBatch>;

  /**
   * Adds events about applications and keys that expire within `leadTime`
   * milliseconds, or have expired if it is zero: once for each, whichever
   * instance calls. Not for those that were created, or whose expiry was moved
   * earlier, less than `leadTime` before the expiry. `toEvents` may be called again on
   * a conflict with another instance. Returns how many were read: if it is not
   * zero, there may be more.
   */
  addExpirationEvents(
    leadTime: number,
    toEvents: (expiration: Expiration) => readonly NewEvent[],
  ): Promise<number>;
}

/** The expiration of an application or of one of its keys. */
export interface Expiration {
  readonly tenantId: string;
  readonly applicationId: string;
  /** The name of the application. */
  readonly name: string;
  /** Absent for the application itself. */
  readonly keyId?: string | undefined;
  readonly at: number;
  /** Whether the tenant then has no manager left. */
  readonly leavesNoManager: boolean;
}

/** The actor or the target of an event. */
export type Principal = Plain<PrincipalRecord>;

/** The state of a credential before or after a change. */
export type CredentialState = Plain<CredentialStateRecord>;

/** An event of the audit log, as records.proto declares it. */
export type EventRecord = Omit<Plain<EventMessage>, "outcome" | "target"> & {
  readonly outcome: "success" | "denied";
  readonly target: Principal;
};

/** An event before the store adds its id and time. */
export type NewEvent = Omit<EventRecord, "id" | "at">;

const completeEvent = createConverter(EventRecordSchema, { withDefaults: true });

/** Copies the fields of an event, and adds the defaults of absent ones. */
export function copyEvent(fields: Partial<Plain<EventMessage>>): EventRecord {
  return completeEvent(fields) as EventRecord;
}

/** All given conditions must match. The ids are of an application, a session or a key. */
export interface EventFilter {
  /** The id of the target or the actor. */
  readonly principal?: string | undefined;
  readonly target?: string | undefined;
  readonly actor?: string | undefined;
  /** Any of these kinds. */
  readonly kinds?: readonly string[] | undefined;
  readonly requestId?: string | undefined;
  readonly address?: string | undefined;
  /** The full name of a method, or the part after the slash: letters, digits and `_`. */
  readonly method?: string | undefined;
  readonly reason?: string | undefined;
}

/** The events of a tenant that match a filter within a period. */
export interface EventRange extends EventFilter {
  readonly tenantId: string;
  /** Inclusive. */
  readonly since?: number | undefined;
  /** Exclusive. */
  readonly until?: number | undefined;
}

export interface EventQuery extends EventRange {
  readonly size: number;
  /** The `next` of an earlier page. */
  readonly after?: string | undefined;
}

export interface EventPage {
  readonly items: readonly EventRecord[];
  /** The cursor of the next page, at most 48 characters. Absent on the last page. */
  readonly next?: string | undefined;
}

export interface EventBatch {
  /** In order, at most {@link maxEventBatch}. Fewer if they are large. */
  readonly events: readonly EventRecord[];
  /** Whether earlier events may be missing. */
  readonly missed: boolean;
  /** Where to continue after this batch. */
  readonly position: string;
}

export const maxEventBatch = 100;

/**
 * The time in the id of an event is by the clock of the instance that wrote it.
 * It may differ from the time of the event by this many milliseconds.
 */
export const maxClockSkew = 10 * 60_000;

export function matchesEventFilter(event: EventRecord, filter: EventFilter): boolean {
  const { principal, target, actor, kinds, requestId, address, method, reason } = filter;
  return (
    (kinds === undefined || kinds.includes(event.kind)) &&
    (requestId === undefined || event.requestId === requestId) &&
    (address === undefined || event.address === address) &&
    (reason === undefined || event.reason === reason) &&
    (method === undefined || hasMethod(event, method)) &&
    (target === undefined || hasId(event.target, target)) &&
    (actor === undefined || hasId(event.actor, actor)) &&
    (principal === undefined || hasId(event.target, principal) || hasId(event.actor, principal))
  );
}

function hasMethod(event: EventRecord, method: string): boolean {
  return event.method === method || (event.method?.endsWith(`/${method}`) ?? false);
}

function hasId(principal: Principal | undefined, id: string): boolean {
  return principal?.applicationId === id || principal?.sessionId === id || principal?.keyId === id;
}

/**
 * Stores report expirations up to a checkpoint for each lead time. It may lag by
 * this many milliseconds, because moving it costs a commit.
 */
const maxLag = 60_000;

/** Milliseconds by which a checkpoint may be ahead after a clock correction. */
const maxAhead = day;

/** The times that decide whether to report an expiration. */
export interface ExpirationTimes {
  readonly at: number;
  /** When the application or key was created. */
  readonly createdAt: number;
  readonly applicationExpiresAt: number;
}

/** The name of the checkpoint of a lead time. */
export function checkpointName(leadTime: number): string {
  return `expirations-reported-${leadTime}`;
}

/** Whether a checkpoint is usable. One that was written while the clock was far ahead would suppress reports. */
export function isUsableCheckpoint(time: number, leadTime: number, now: number): boolean {
  return time <= now + leadTime + maxAhead;
}

/** Where to start without a checkpoint. */
export function firstCheckpoint(leadTime: number, now: number): number {
  return now - (leadTime === 0 ? expiredRetention : 0);
}

/** Whether a checkpoint must be moved although nothing is due. */
export function isFarBehind(time: number, leadTime: number, now: number): boolean {
  return time < now + leadTime - maxLag;
}

/**
 * Whether to report an expiration. Skips keys whose application expires first,
 * credentials that were created within the lead time and, if the lead time is
 * positive, expirations that have already passed.
 */
export function isReportable(
  { at, createdAt, applicationExpiresAt }: ExpirationTimes,
  leadTime: number,
  now: number,
): boolean {
  const isInTime = leadTime === 0 || (at > now && applicationExpiresAt > now);
  return isInTime && at <= applicationExpiresAt && createdAt <= at - leadTime;
}
