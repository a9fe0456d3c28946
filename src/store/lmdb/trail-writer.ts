import { withApplications } from "../session-applications.js";
import {
  type ApplicationRecord,
  type Clock,
  type SessionRecord,
  StoreUnavailable,
} from "../store.js";
import { AnswerKept, type CallerRecords, type ChangeCaller, type Trail } from "../trail.js";
import { isAlive, isSessionThere } from "./alive.js";
import type { Answers } from "./answers.js";
import { askFirst, callBack, type Refused } from "./callback.js";
import type { EventLog } from "./event-log.js";
import type { Records } from "./records.js";

/** Writes the trail of a change in the transaction that makes the change. */
export interface TrailWriter {
  /**
   * Inside `write`, before the change: refuses it where nobody waits for it any
   * more, where its caller may no longer make it, and with {@link AnswerKept}
   * where the answer of the trail is kept.
   */
  open(trail: Trail<never> | undefined): Refused | undefined;

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

  return {
    open(trail) {
      return (
        trail &&
        askFirst(() => {
          if (trail.isGivenUp?.()) {
            throw new StoreUnavailable("The change was given up before it was made.");
          }
          const now = clock();
          trail.caller?.check(findCaller(trail.caller, now), now);
          if (trail.answerId !== undefined && answers.has(trail.answerId)) {
            throw new AnswerKept("The change was made before, and its answer is kept.");
          }
          return undefined;
        })
      );
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
