import { AnswerKept, CallerChanged } from "./errors.js";
import type { NewEvent } from "./events.js";
import type { ApplicationRecord, SessionRecord } from "./records.js";

/**
 * What is written in one step with a change: all of it takes effect, or
 * nothing does, whatever happens to the process in between.
 */
export interface Trail<R> {
  /** Who makes the change: it is made only while the caller has the authority that was decided on. */
  readonly caller?: ChangeCaller | undefined;

  /** An answer that is kept under this id refuses the change with {@link AnswerKept}, before anything of it is tried. */
  readonly answerId?: string | undefined;

  /** Whether the change takes access away: it then goes before others, and finds space on a disk that is full. */
  readonly revokes?: boolean | undefined;

  /** Whether nobody waits for the change any more: it is then not tried, nor tried again. */
  isGivenUp?(): boolean;

  /** What to write, once the outcome of the change is known. It may be asked again if the change is tried again. */
  entriesFor(outcome: R): TrailEntries;
}

/** The caller whose authority a change rests on. */
export interface ChangeCaller {
  readonly applicationId: string;
  /** Where the key is that of a session. */
  readonly sessionId?: string | undefined;
  /** The application that authorized that session. */
  readonly authorizerId?: string | undefined;

  /** Sees the records of the caller as they are when the change is written, if they are there. Throws {@link CallerChanged}. */
  check(found: CallerRecords | undefined, now: number): void;
}

export interface CallerRecords {
  readonly application: ApplicationRecord;
  /** Where the key is that of a session. */
  readonly session?: SessionRecord | undefined;
  /** The application that authorized that session. */
  readonly authorizer?: ApplicationRecord | undefined;
}

export interface TrailEntries {
  readonly events: readonly NewEvent[];
  /** The answer to keep under {@link Trail.answerId}. */
  readonly answer?: NewAnswer | undefined;
}

/** An answer that can be given again. What it says only its caller can read. */
export interface NewAnswer {
  readonly sealed: Uint8Array;
  /** Milliseconds for which it is kept. */
  readonly ttl: number;
}

export interface AnswerStore {
  /** Reads an answer that is kept. Ids are 64 hexadecimal digits. */
  find(id: string): Promise<Uint8Array | undefined>;
}
