import type { Grants } from "../../contract/grants.js";
import type { FollowOptions } from "./changes.js";

/** What happened in a tenant, kept for as long as the operator wants. */
export interface EventStore {
  /** Adds events that come with no change of a record. */
  add(events: readonly NewEvent[]): Promise<void>;

  /**
   * Reads events of a tenant, newest first. A page that is not the last holds
   * one at least, and fewer than are asked for where they are large, so that
   * it never takes much memory. Reading stops when the signal is given, and
   * its reason is thrown.
   */
  list(query: EventQuery, signal?: AbortSignal): Promise<EventPage>;

  /**
   * Follows the events of a tenant from a position, or from when it is first
   * asked. Answers a batch at once, then one with each event, and one without
   * events where none come for `beat` milliseconds. Each event is told once,
   * in the order in which they took effect. Where the position is too old to
   * continue from, the next batch says so. Ends when the signal is given.
   */
  follow(options: FollowOptions): AsyncIterable<EventBatch>;

  /**
   * Adds events about applications and keys that end within `lead`
   * milliseconds, or have ended where that is zero: about each of them once,
   * whichever instance asks, and only about those that were made before that
   * moment. `toEvents` may be called again if another instance comes between.
   * Answers how many it looked at: where that is not zero, there may be more.
   */
  addForEnds(lead: number, toEvents: (ending: Ending) => readonly NewEvent[]): Promise<number>;
}

/** What ends when: an application, or one of its keys. */
export interface Ending {
  readonly tenantId: string;
  readonly applicationId: string;
  /** Absent where it is the application. */
  readonly keyId?: string | undefined;
  readonly at: number;
  /** Whether no application manages the tenant from then on, as things are now. */
  readonly leavesNoManager: boolean;
}

/** Who did something, or to whom it was done. */
export interface Party {
  readonly applicationId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly keyId?: string | undefined;
}

/** What of a credential an event shows, as it was or as it became. */
export interface CredentialState extends Grants {
  readonly name?: string | undefined;
  readonly disabled?: boolean | undefined;
  readonly allowedOrigins?: readonly string[] | undefined;
  readonly allowedCidrs?: readonly string[] | undefined;
  readonly sessionQuota?: number | undefined;
  readonly expiresAt?: number | undefined;
}

export interface NewEvent {
  readonly tenantId: string;
  /** For example `application.updated`. */
  readonly kind: string;
  readonly outcome: "success" | "denied";
  /** Absent where nobody asked for it, such as an expiry. */
  readonly actor?: Party | undefined;
  readonly target: Party;
  readonly before?: CredentialState | undefined;
  readonly after?: CredentialState | undefined;
  /** The word for why it was denied. */
  readonly reason?: string | undefined;
  /** The method that was called, for example `latchkey.v1.ApplicationService/UpdateApplication`. */
  readonly method?: string | undefined;
  readonly requestId?: string | undefined;
  /** From where it was called. */
  readonly address?: string | undefined;
  /** Of how many alike this one tells; absent for one. */
  readonly count?: number | undefined;
  /** The end that is told of. */
  readonly endsAt?: number | undefined;
}

export interface EventRecord extends NewEvent {
  /** A UUID. */
  readonly id: string;
  /** When it took effect, by the store's clock. */
  readonly at: number;
}

/** Which events are asked for: those to which all that is given applies. */
export interface EventFilter {
  /** Only events whose target has this id: an application's, a session's or a key's. */
  readonly target?: string | undefined;
  /** Only events whose actor has this id: an application's, a session's or a key's. */
  readonly actor?: string | undefined;
  readonly kind?: string | undefined;
}

export interface EventQuery extends EventFilter {
  readonly tenantId: string;
  /** Only events at or after this moment. */
  readonly since?: number | undefined;
  /** Only events before this moment. */
  readonly until?: number | undefined;
  readonly size: number;
  /** The `next` of an earlier page. */
  readonly after?: string | undefined;
}

export interface EventPage {
  readonly items: readonly EventRecord[];
  /** The place of what follows, at most 48 characters; absent on the last page. */
  readonly next?: string | undefined;
}

export interface EventBatch {
  /** In their order, at most {@link largestEventBatch}, and fewer where they are large. */
  readonly events: readonly EventRecord[];
  /** Whether events before these may be missing. */
  readonly missed: boolean;
  /** What to follow from after this batch. */
  readonly position: string;
}

/** How many events a batch may hold. */
export const largestEventBatch = 100;

/** Whether an event is one that is asked for. */
export function isWanted(event: EventRecord, { target, actor, kind }: EventFilter): boolean {
  return (
    (kind === undefined || event.kind === kind) &&
    (target === undefined || isOneOf(event.target, target)) &&
    (actor === undefined || isOneOf(event.actor, actor))
  );
}

function isOneOf(party: Party | undefined, id: string): boolean {
  return party?.applicationId === id || party?.sessionId === id || party?.keyId === id;
}
