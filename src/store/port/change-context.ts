import { AlreadyApplied, CallerChanged } from "./errors.js";
import type { NewEvent } from "./events.js";
import type { ApplicationRecord, SessionRecord } from "./records.js";

/** The preconditions of a write, and the response that is stored with it in one atomic step. */
export interface WriteContext<R> {
  /** The change is written only while the caller is still authorized. */
  readonly caller?: ChangeCaller | undefined;

  /** The id of an idempotent call. If its response is stored, the change fails with {@link AlreadyApplied}. */
  readonly idempotencyId?: string | undefined;

  /** Whether the change removes access: it then has priority, and reserved space on a full disk. */
  readonly revokes?: boolean | undefined;

  /** Whether the call was canceled: the change is then not tried, nor retried. */
  isCanceled?(): boolean;

  /** Returns the response to store under {@link idempotencyId}. Called again if the change is retried. */
  responseFor?(outcome: R): NewResponse | undefined;
}

/** The context of a change that the audit log records, in the same atomic step. */
export interface ChangeContext<R> extends WriteContext<R> {
  /** Returns the event for the outcome of the change, if it has one. Called again if the change is retried. */
  eventFor(outcome: R): NewEvent | undefined;
}

/** The caller of a change, whose authority is checked again when it is written. */
export interface ChangeCaller {
  readonly applicationId: string;
  /** Set if the caller uses a session key. */
  readonly sessionId?: string | undefined;
  /** The application that authorized that session. */
  readonly authorizerId?: string | undefined;

  /** Checks the current records of the caller, if they exist. Throws {@link CallerChanged}. */
  assertAuthority(found: CallerRecords | undefined, now: number): void;
}

export interface CallerRecords {
  readonly application: ApplicationRecord;
  /** Set if the caller uses a session key. */
  readonly session?: SessionRecord | undefined;
  /** The application that authorized that session. */
  readonly authorizer?: ApplicationRecord | undefined;
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
