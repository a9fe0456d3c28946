import type {
  CallerRecords,
  ChangeCaller,
  ChangeContext,
  NewResponse,
  ResponseStore,
  WriteContext,
} from "../port/change-context.js";
import { AlreadyApplied, ChangeCanceled } from "../port/errors.js";
import { isUnexpired } from "../port/records.js";
import { isSessionValid, withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import { type Environment, type Refused, refuseOnThrow, runCallback } from "./environment.js";
import type { EventLog } from "./event-log.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import { after, emptyValue, timeBytes } from "./row-keys.js";

/** Checks the preconditions of a change, and writes its audit events, in the transaction of the change. */
export interface ChangeWriter {
  /**
   * Wraps a change for `write`. It is refused before anything is written if it
   * was canceled, if its caller is no longer authorized, and with
   * {@link AlreadyApplied} if its response is already stored.
   */
  withPreconditions<R>(
    context: WriteContext<never> | undefined,
    change: (now: number) => R,
  ): () => R | Refused;

  /** Writes the event, if any, and the response, inside `write` and after the change. */
  record<R>(context: ChangeContext<R>, outcome: R): void;

  /** Writes the response, inside `write` and after the change. */
  storeResponse<R>(context: WriteContext<R> | undefined, outcome: R): void;
}

interface ChangeWriterParts {
  readonly events: EventLog;
  readonly responses: Responses;
  readonly applications: ApplicationRecords;
  readonly sessions: SessionRecords;
  readonly clock: Clock;
}

export function createChangeWriter(parts: ChangeWriterParts): ChangeWriter {
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

  function assertPreconditions(context: WriteContext<never>, now: number): undefined {
    if (context.isCanceled?.()) {
      throw new ChangeCanceled("The change was canceled before it was written.");
    }
    context.caller?.assertAuthority(findCaller(context.caller, now), now);
    if (context.idempotencyId !== undefined && responses.has(context.idempotencyId)) {
      throw new AlreadyApplied("The change was already made, and its response is stored.");
    }
  }

  function storeResponse<R>(context: WriteContext<R> | undefined, outcome: R): void {
    const id = context?.idempotencyId;
    const response = runCallback(() => context?.responseFor?.(outcome));
    if (response && id !== undefined) {
      responses.put(id, response);
    }
  }

  return {
    withPreconditions(context, change) {
      return () => {
        const now = clock();
        const refused = context && refuseOnThrow(() => assertPreconditions(context, now));
        return refused ?? change(now);
      };
    },

    record(context, outcome) {
      const event = runCallback(() => context.eventFor(outcome));
      if (event) {
        events.append(event);
      }
      storeResponse(context, outcome);
    },

    storeResponse,
  };
}

/** A row of `responses` is the expiry, then the sealed response. */
const timeSize = 8;

/** The stored responses of idempotent calls. Ids are hexadecimal. */
interface Responses extends ResponseStore {
  /** Whether a response is stored, inside `write`. */
  has(id: string): boolean;

  /** Stores a response, inside `write`. It may replace an expired one. */
  put(id: string, response: NewResponse): void;

  needsPruning(now: number): boolean;

  /** Removes expired responses. */
  prune(now: number, limit: number): void;
}

export function createResponses({ read, tables }: Environment, clock: Clock): Responses {
  const { responses, responseExpirations } = tables;

  function findUnexpired(id: string): Buffer | undefined {
    const row = responses.get(Buffer.from(id, "hex"));
    return row && clock() < row.readDoubleBE(0) ? row : undefined;
  }

  function expired(now: number, limit: number): Buffer[] {
    return [...responseExpirations.getKeys({ end: after(timeBytes(now)), limit })];
  }

  return {
    async find(id) {
      return read(() => findUnexpired(id)?.subarray(timeSize));
    },

    has: (id) => findUnexpired(id) !== undefined,

    put(id, { sealed, ttl }) {
      const key = Buffer.from(id, "hex");
      const replaced = responses.get(key);
      if (replaced) {
        responseExpirations.remove(responseExpirationKey(replaced, key));
      }
      const row = Buffer.concat([timeBytes(clock() + ttl), sealed]);
      responses.put(key, row);
      responseExpirations.put(responseExpirationKey(row, key), emptyValue);
    },

    needsPruning: (now) => expired(now, 1).length > 0,

    prune(now, limit) {
      for (const key of expired(now, limit)) {
        responses.remove(key.subarray(timeSize));
        responseExpirations.remove(key);
      }
    },
  };
}

function responseExpirationKey(row: Buffer, key: Buffer): Buffer {
  return Buffer.concat([row.subarray(0, timeSize), key]);
}
