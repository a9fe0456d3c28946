import type { CallerRecords, ChangeCaller, Trail } from "../port/audit.js";
import { AnswerKept, StoreUnavailable } from "../port/errors.js";
import type { ApplicationRecord, SessionRecord } from "../port/records.js";
import { withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import { askFirst, callBack, type Refused } from "./errors.js";
import type { EventLog } from "./event-log.js";
import type { Answers } from "./idempotency.js";
import { isAlive, isSessionThere } from "./liveness.js";
import type { Records } from "./records.js";

/** Writes the trail of a change in the transaction that makes the change. */
export interface TrailWriter {
  /**
   * Makes the work of `write` from a change. The change is refused before
   * anything is written if nobody waits for it any more, if its caller may no
   * longer make it, and with {@link AnswerKept} if its answer is kept.
   */
  guard<R>(trail: Trail<never> | undefined, change: (now: number) => R): () => R | Refused;

  /** Inside `write`, after the change. */
  close<R>(trail: Trail<R> | undefined, outcome: R): void;
}

interface TrailWriterParts {
  readonly events: EventLog;
  readonly answers: Answers;
  readonly applications: Records<ApplicationRecord>;
  readonly sessions: Records<SessionRecord>;
  readonly clock: Clock;
}

export function createTrailWriter(parts: TrailWriterParts): TrailWriter {
  const { events, answers, applications, sessions, clock } = parts;

  function findCaller(caller: ChangeCaller, now: number): CallerRecords | undefined {
    if (caller.sessionId === undefined) {
      const application = applications.find(caller.applicationId);
      return isAlive(application, now) ? { application } : undefined;
    }
    const session = sessions.find(caller.sessionId);
    const found = session && withApplications(session, applications.find);
    return isSessionThere(found, now) ? found : undefined;
  }

  function check(trail: Trail<never>, now: number): undefined {
    if (trail.isGivenUp?.()) {
      throw new StoreUnavailable("The change was given up before it was made.");
    }
    trail.caller?.check(findCaller(trail.caller, now), now);
    if (trail.answerId !== undefined && answers.has(trail.answerId)) {
      throw new AnswerKept("The change was made before, and its answer is kept.");
    }
  }

  return {
    guard(trail, change) {
      return () => {
        const now = clock();
        const refused = trail && askFirst(() => check(trail, now));
        return refused ?? change(now);
      };
    },

    close(trail, outcome) {
      if (!trail) {
        return;
      }
      const { events: told, answer } = callBack(() => trail.entriesFor(outcome));
      for (const event of told) {
        events.append(event);
      }
      if (answer && trail.answerId !== undefined) {
        answers.put(trail.answerId, answer);
      }
    },
  };
}
