import { type Decided, decide, type FindLive, type RecordChange } from "../core/decide.js";
import type {
  Change,
  MakeChange,
  Reads,
  RecordKind,
  RecordRef,
  SessionLimit,
} from "../port/change.js";
import { AlreadyApplied, ChangeCanceled, ExternalIdTaken, LastManager } from "../port/errors.js";
import { type ApplicationRecord, isUnexpired } from "../port/records.js";
import { isSessionValid, revokesSessions, withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { ApplicationIndex, ExpirationIndex, ImportedKeyIndex } from "./application-index.js";
import { type Environment, Refused, refuseOnThrow } from "./environment.js";
import type { EventLog } from "./event-log.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import type { Responses } from "./responses.js";
import type { SessionIndex } from "./session-index.js";

interface ChangeParts {
  readonly environment: Environment;
  readonly applications: ApplicationRecords;
  readonly sessions: SessionRecords;
  readonly index: ApplicationIndex;
  readonly expirations: ExpirationIndex;
  readonly importedKeys: ImportedKeyIndex;
  readonly sessionIndex: SessionIndex;
  readonly events: Pick<EventLog, "append">;
  readonly responses: Responses;
  readonly clock: Clock;
}

/** How often a costly decision is made before the transaction if its records change meanwhile. */
const maxDecisionsAhead = 5;

/** Milliseconds after which a decision is made again: a key of the caller may have expired since. */
const maxDecisionAge = 1_000;

/** The result of a transaction whose records have changed since the decision. */
const stale = Symbol("stale");

/** Makes each change in one transaction, which reads, decides and writes. */
export function createMakeChange(parts: ChangeParts): MakeChange {
  const { environment, applications, sessions, index, expirations, importedKeys } = parts;
  const { sessionIndex, events, responses, clock } = parts;
  const { read, write } = environment;

  const findLive =
    (now: number): FindLive =>
    ({ kind, id }) => {
      if (kind === "application") {
        const application = applications.find(id);
        return (isUnexpired(application, now) ? application : undefined) as never;
      }
      const session = sessions.find(id);
      const found = session && withApplications(session, applications.find);
      return (isSessionValid(found, now) ? found : undefined) as never;
    };

  /** Refuses a change that cannot be made, whatever is decided. */
  function refuseUndecided({ target, ...change }: AnyChange): Refused | undefined {
    const { creates, idempotencyId, cancellation } = change;
    if (cancellation?.reason !== undefined) {
      return new Refused(new ChangeCanceled("The change was canceled before it was written."));
    }
    if (idempotencyId !== undefined && responses.has(idempotencyId)) {
      const message = "The change was already made, and its response is stored.";
      return new Refused(new AlreadyApplied(message));
    }
    const { kind, id } = target;
    return creates && (kind === "application" ? applications : sessions).find(id)
      ? new Refused(new Error(`There is already a record with the id ${id}.`))
      : undefined;
  }

  /** Refuses a decided change that conflicts with other records. */
  function refuseDecided(decided: Decided<unknown>, now: number): Refused | undefined {
    const { change, needsOtherManager, claimedExternalId, provided = [] } = decided;
    if (change?.kind === "application") {
      const { before, after } = change;
      if (needsOtherManager && !index.hasOtherManager(before as ApplicationRecord, now)) {
        return new Refused(new LastManager());
      }
      if (after && claimedExternalId !== undefined && isExternalIdTaken(after, now)) {
        return new Refused(new ExternalIdTaken(claimedExternalId));
      }
    }
    for (const limit of provided) {
      const reached = findReached(limit, now);
      if (reached) {
        return new Refused(reached);
      }
    }
    return undefined;
  }

  function isExternalIdTaken(application: ApplicationRecord, now: number): boolean {
    return index.isExternalIdTaken(application, (id) => {
      const other = applications.find(id);
      return isUnexpired(other, now) ? other : undefined;
    });
  }

  function findReached(limit: SessionLimit, now: number) {
    return sessionIndex.limitReached(limit, now, (id, epoch) => {
      const authorizer = applications.find(id);
      return isUnexpired(authorizer, now) && authorizer.authorizationEpoch === epoch;
    });
  }

  function writeRecord({ kind, id, before, after }: RecordChange): void {
    if (kind === "session") {
      after ? sessions.put(after) : sessions.remove(id);
      sessionIndex.change(before, after);
      return;
    }
    after ? applications.put(after) : applications.remove(id);
    index.change(before, after);
    expirations.update(before, after);
    importedKeys.update(before, after);
    if (before && (!after || revokesSessions(before, after))) {
      sessionIndex.scheduleSweep(id);
    }
  }

  function commit<R>(decided: Decided<R>, idempotencyId: string | undefined, now: number) {
    const refused = refuseDecided(decided, now);
    if (refused) {
      return refused;
    }
    const { change, event, response, result } = decided;
    if (change) {
      writeRecord(change);
      if (event) {
        events.append(event);
      }
    }
    if (response && idempotencyId !== undefined) {
      responses.put(idempotencyId, response);
    }
    return result;
  }

  /** Decides before the transaction. In it, `isCurrent` returns whether the records are still the same. */
  function decideAhead<K extends RecordKind, N extends Reads, R>(change: Change<K, N, R>) {
    return read(() => {
      const now = clock();
      const find = findLive(now);
      const seen = new Map<RecordRef, string>();
      const findAndNote: FindLive = (ref) => {
        const found = find(ref);
        seen.set(ref, versionsOf(found));
        return found;
      };
      const decided = refuseOnThrow(() => decide(change, findAndNote, now));
      const isCurrent = (then: number) =>
        then - now <= maxDecisionAge &&
        [...seen].every(([ref, versions]) => versionsOf(findLive(then)(ref)) === versions);
      return { decided, isCurrent };
    });
  }

  return async (change) => {
    const { idempotencyId, isCostly, revokes } = change;
    const priority = revokes ? "revocation" : "ordinary";
    for (let decisions = 0; ; decisions++) {
      const ahead = isCostly && decisions < maxDecisionsAhead ? decideAhead(change) : undefined;
      const result = await write(() => {
        const now = clock();
        const refused = refuseUndecided(change);
        if (refused) {
          return refused;
        }
        if (ahead && !ahead.isCurrent(now)) {
          return stale;
        }
        const decided = ahead?.decided ?? refuseOnThrow(() => decide(change, findLive(now), now));
        return decided instanceof Refused ? decided : commit(decided, idempotencyId, now);
      }, priority);
      if (result !== stale) {
        return result as Awaited<ReturnType<typeof change.decide>["result"]>;
      }
    }
  };
}

type AnyChange = Pick<
  Change<RecordKind, Reads, unknown>,
  "target" | "creates" | "idempotencyId" | "cancellation"
>;

/** Equal for records that are the same, uses included. */
function versionsOf(found: object | undefined): string {
  const records = found && "session" in found ? Object.values(found) : [found];
  return JSON.stringify(
    (records as (ApplicationRecord | undefined)[]).map((record) => [
      record?.version,
      record?.lastUsedAt,
    ]),
  );
}
