import { type Decided, decide, type FindLive } from "../core/decide.js";
import { isLive, withParents } from "../core/liveness.js";
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
import type { Clock } from "../port/store.js";
import { type Environment, Refused, refuseOnThrow } from "./environment.js";
import type { EventLog } from "./event-log.js";
import type { RecordStore } from "./record-store.js";
import type { Responses } from "./responses.js";

interface ChangeParts {
  readonly environment: Environment;
  readonly records: RecordStore;
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
  const { environment, records, events, responses, clock } = parts;
  const { openSessions, tables } = records;
  const { read, write } = environment;

  const findLive =
    (now: number): FindLive =>
    ({ kind, id }) => {
      const record = records.find(kind, id);
      const found = record && withParents(kind, record, tables.application.find);
      return isLive(kind, found, now) ? found : undefined;
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
    return creates && records.find(kind, id)
      ? new Refused(new Error(`There is already a record with the id ${id}.`))
      : undefined;
  }

  /** Refuses a decided change that conflicts with other records. */
  function refuseDecided(decided: Decided<unknown>, now: number): Refused | undefined {
    const { change, needsOtherManager, claimedExternalId, provided = [] } = decided;
    if (change?.kind === "application") {
      const { before, after } = change;
      if (needsOtherManager && !hasOtherManager(records, before as ApplicationRecord, now)) {
        return new Refused(new LastManager());
      }
      if (after && claimedExternalId !== undefined && isExternalIdTaken(records, after, now)) {
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

  function findReached(limit: SessionLimit, now: number) {
    return openSessions.limitReached(limit, now, (id, epoch) => {
      const authorizer = tables.application.find(id);
      return isUnexpired(authorizer, now) && authorizer.authorizationEpoch === epoch;
    });
  }

  function commit<R>(decided: Decided<R>, idempotencyId: string | undefined, now: number) {
    const refused = refuseDecided(decided, now);
    if (refused) {
      return refused;
    }
    const { change, event, response, result } = decided;
    if (change) {
      records.write(change.kind, change.before, change.after);
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

/** Whether another application of the tenant still manages it after a time. */
export function hasOtherManager(
  { indexes }: Pick<RecordStore, "indexes">,
  { tenantId, id }: ApplicationRecord,
  time: number,
): boolean {
  const later = { kind: "application", index: "manager", tenantId, since: time + 1 } as const;
  return indexes.ids(later, { limit: 2 }).some((other) => other !== id);
}

/** Whether another live application of the tenant has the external id of one. */
export function isExternalIdTaken(
  { indexes, tables }: Pick<RecordStore, "indexes" | "tables">,
  { id, tenantId, externalId: value }: Pick<ApplicationRecord, "id" | "tenantId" | "externalId">,
  now: number,
): boolean {
  if (value === undefined) {
    return false;
  }
  const owners = indexes.ids({ kind: "application", index: "externalId", tenantId, value });
  return owners.some((owner) => {
    const other = owner === id ? undefined : tables.application.find(owner);
    return isUnexpired(other, now) && other.externalId === value;
  });
}
