/**
 * One way to change a record: the caller declares what its decision needs, the
 * engine reads it, and a pure function decides what to write. The engine writes
 * the record, its event and its response in one atomic step, or nothing.
 */
import type { SessionQuota } from "./errors.js";
import type { NewEvent } from "./events.js";
import type { ApplicationRecord, SessionRecord, SessionWithApplication } from "./records.js";

/** The records that changes write. */
export interface Records {
  readonly application: ApplicationRecord;
  readonly session: SessionRecord;
}

export type RecordKind = keyof Records;

/** A record as decisions see it: unexpired, not revoked, and with the records that it depends on. */
export interface LiveRecords {
  readonly application: ApplicationRecord;
  readonly session: SessionWithApplication;
}

export interface RecordRef<K extends RecordKind = RecordKind> {
  readonly kind: K;
  readonly id: string;
}

/** The records that a decision needs besides its target, by name. Absent ones are not read. */
export type Reads = Readonly<Record<string, RecordRef | undefined>>;

/** What was read for a decision. Records that do not exist are undefined. */
export type Snapshot<K extends RecordKind, N extends Reads> = {
  /** The id of the target. A new record may get another one than was proposed. */
  readonly id: string;
  readonly target: LiveRecords[K] | undefined;
} & { readonly [P in keyof N]: ReadRecord<N[P]> };

type ReadRecord<N> = N extends RecordRef<infer K> ? LiveRecords[K] | undefined : undefined;

/** A change of one record. */
export interface Change<K extends RecordKind, N extends Reads, R> {
  readonly target: RecordRef<K>;

  /** Whether the target is new. The change fails if a record with its id exists. */
  readonly creates?: boolean | undefined;

  readonly reads: N;

  /** The id of an idempotent call. If its response is stored, the change fails with `AlreadyApplied`. */
  readonly idempotencyId?: string | undefined;

  /** Whether the change removes access: it then has priority, and reserved space on a full disk. */
  readonly revokes?: boolean | undefined;

  /** Whether the decision may take long. It must then not block other writes. */
  readonly isCostly?: boolean | undefined;

  /** The change is not tried, nor retried, once there is a reason. */
  readonly cancellation?: { readonly reason?: unknown } | undefined;

  /**
   * Decides on what was read and the store's time, without side effects: it may
   * run more than once. Throws to refuse.
   */
  decide(snapshot: Snapshot<K, N>, now: number): Decision<K, R>;
}

/** What a change writes, and its result. */
export interface Decision<K extends RecordKind, R> {
  /** The new record, or null to delete it. Absent to leave it as it is, without an event. */
  readonly put?: Records[K] | null | undefined;

  /** What must hold when the record is written. */
  readonly provided?: readonly SessionLimit[] | undefined;

  readonly event?: NewEvent | undefined;

  /** The response to store under the id of an idempotent call. */
  readonly response?: NewResponse | undefined;

  readonly result: R;
}

/**
 * The open sessions of an application and epoch must stay below a limit, or the
 * change fails with `SessionQuotaReached`. Authorized, expired and revoked
 * sessions do not count as unauthorized. Concurrent processes may exceed a limit
 * slightly, but a session below it is never refused.
 */
export interface SessionLimit {
  readonly quota: SessionQuota;
  readonly applicationId: string;
  readonly epoch: number;
  /** For the quota of a network. */
  readonly networkHash?: Uint8Array | undefined;
  readonly limit: number;
}

/** A stored response, encrypted so that only its caller can read it. */
export interface NewResponse {
  readonly sealed: Uint8Array;
  /** In milliseconds. */
  readonly ttl: number;
}

export interface ResponseStore {
  /** Finds a stored response. Ids are 64 hexadecimal digits. */
  find(id: string): Promise<Uint8Array | undefined>;
}

/**
 * Changes a record in one atomic step. Throws what the decision throws, and a
 * `Refusal`: `LastManager` if the tenant would be left without an enabled
 * application that can create and update others (changing the expiry of the last
 * one is allowed), `ExternalIdTaken`, `SessionQuotaReached`, `AlreadyApplied` or
 * `ChangeCanceled`. Nothing is then written.
 *
 * The event of a change that leaves the record as it is is not written; its
 * response is.
 */
export type MakeChange = <K extends RecordKind, N extends Reads, R>(
  change: Change<K, N, R>,
) => Promise<R>;
