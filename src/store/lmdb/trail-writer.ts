import { StoreUnavailable } from "../store.js";
import { AnswerKept, type Trail } from "../trail.js";
import type { Answers } from "./answers.js";
import { callBack } from "./callback.js";
import type { EventLog } from "./event-log.js";

/** Writes the trail of a change in the transaction that makes the change. */
export interface TrailWriter {
  /** Inside `write`, before the change: throws where nobody waits for it any more, and {@link AnswerKept} where the answer of the trail is kept. */
  open(trail: Trail<never> | undefined): void;

  /** Inside `write`, after the change. */
  close<R>(trail: Trail<R> | undefined, outcome: R): void;
}

export function createTrailWriter(events: EventLog, answers: Answers): TrailWriter {
  return {
    open(trail) {
      if (trail?.isGivenUp?.()) {
        throw new StoreUnavailable("The change was given up before it was made.");
      }
      if (trail?.answerId !== undefined && answers.has(trail.answerId)) {
        throw new AnswerKept("The change was made before, and its answer is kept.");
      }
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
