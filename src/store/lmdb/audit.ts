import type { CallerRecords, ChangeCaller, ChangeContext } from "../port/audit.js";
import { AlreadyApplied, StoreUnavailable } from "../port/errors.js";
import type { ApplicationRecord, SessionRecord } from "../port/records.js";
import { withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import { type Refused, refuseOnThrow, runCallback } from "./errors.js";
import type { EventLog } from "./event-log.js";
import type { Responses } from "./idempotency.js";
import { isSessionValid, isUnexpired } from "./liveness.js";
import type { Records } from "./records.js";

/** Checks the preconditions of a change, and writes its audit events, in the transaction of the change. */
export interface AuditWriter {
  /**
   * Wraps a change for `write`. It is refused before anything is written if it
   * was canceled, if its caller is no longer authorized, and with
   * {@link AlreadyApplied} if its response is already stored.
   */
  guard<R>(
    context: ChangeContext<never> | undefined,
    change: (now: number) => R,
  ): () => R | Refused;

  /** Writes the events and the response, inside `write` and after the change. */
  record<R>(context: ChangeContext<R> | undefined, outcome: R): void;
}

interface AuditWriterParts {
  readonly events: EventLog;
  readonly responses: Responses;
  readonly applications: Records<ApplicationRecord>;
  readonly sessions: Records<SessionRecord>;
  readonly clock: Clock;
}

export function createAuditWriter(parts: AuditWriterParts): AuditWriter {
  const { events, responses, applications, sessions, clock } = parts;

  function findCaller(caller: ChangeCaller, now: number): CallerRecords | undefined {
    if (caller.sessionId === undefined) {
      const application = applications.find(caller.applicationId);
      return isUnexpired(application, now) ? { application } : undefined;
    }
    const session = sessions.find(caller.sessionId);
    const found = session && withApplications(session, applications.find);
    return isSessionValid(found, now) ? found : undefined;
  }

  function check(context: ChangeContext<never>, now: number): undefined {
    if (context.isCanceled?.()) {
      throw new StoreUnavailable("The change was canceled before it was written.");
    }
    context.caller?.check(findCaller(context.caller, now), now);
    if (context.idempotencyId !== undefined && responses.has(context.idempotencyId)) {
      throw new AlreadyApplied("The change was already made, and its response is stored.");
    }
  }

  return {
    guard(context, change) {
      return () => {
        const now = clock();
        const refused = context && refuseOnThrow(() => check(context, now));
        return refused ?? change(now);
      };
    },

    record(context, outcome) {
      if (!context) {
        return;
      }
      const { events: newEvents, response } = runCallback(() => context.entriesFor(outcome));
      for (const event of newEvents) {
        events.append(event);
      }
      if (response && context.idempotencyId !== undefined) {
        responses.put(context.idempotencyId, response);
      }
    },
  };
}
