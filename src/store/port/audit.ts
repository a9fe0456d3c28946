import { AnswerKept, CallerChanged } from "./errors.js";
import type { NewEvent } from "./events.js";
import type { ApplicationRecord, SessionRecord } from "./records.js";

/**
 * The preconditions of a change, and the audit events and response that are
 * written with it in one atomic step.
 */
export interface Trail<R> {
  /** The change is written only while the caller is still authorized. */
  readonly caller?: ChangeCaller | undefined;

  /** The id of an idempotent call. If its response is stored, the change fails with {@link AnswerKept}. */
  readonly answerId?: string | undefined;

  /** Whether the change removes access: it then has priority, and reserved space on a full disk. */
  readonly revokes?: boolean | undefined;

  /** Whether the call was canceled: the change is then not tried, nor retried. */
  isGivenUp?(): boolean;

  /** Returns the events and the response for the outcome of the change. Called again if the change is retried. */
  entriesFor(outcome: R): TrailEntries;
}

/** The caller of a change, whose authority is checked again when it is written. */
export interface ChangeCaller {
  readonly applicationId: string;
  /** Set if the caller uses a session key. */
  readonly sessionId?: string | undefined;
  /** The application that authorized that session. */
  readonly authorizerId?: string | undefined;

  /** Checks the current records of the caller, if they exist. Throws {@link CallerChanged}. */
  check(found: CallerRecords | undefined, now: number): void;
}

export interface CallerRecords {
  readonly application: ApplicationRecord;
  /** Set if the caller uses a session key. */
  readonly session?: SessionRecord | undefined;
  /** The application that authorized that session. */
  readonly authorizer?: ApplicationRecord | undefined;
}

export interface TrailEntries {
  readonly events: readonly NewEvent[];
  /** The response to store under {@link Trail.answerId}. */
  readonly answer?: NewAnswer | undefined;
}

/** A stored response, encrypted so that only its caller can read it. */
export interface NewAnswer {
  readonly sealed: Uint8Array;
  /** In milliseconds. */
  readonly ttl: number;
}

export interface AnswerStore {
  /** Finds a stored response. Ids are 64 hexadecimal digits. */
  find(id: string): Promise<Uint8Array | undefined>;
}
