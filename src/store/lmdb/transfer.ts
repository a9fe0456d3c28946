import { waitForNextTick } from "../../lib/event-loop.js";
import type { EventRecord } from "../port/events.js";
import {
  hasOtherKeys,
  isWritten,
  type Judging,
  mergeApplication,
  mergeSession,
  outcomeOfApplication,
  outcomeOfEvent,
  outcomeOfSession,
} from "../port/import.js";
import type { ApplicationRecord, SessionRecord } from "../port/records.js";
import { applicationIdsOf, withApplications } from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type {
  ImportedApplication,
  ImportedSession,
  ImportOptions,
  ImportOutcome,
  TransferStore,
} from "../port/transfer.js";
import type { ApplicationIndex, EndIndex, ForeignKeyIndex } from "./application-index.js";
import type { ChangeLog } from "./changes.js";
import type { Environment } from "./environment.js";
import type { EventLog } from "./event-log.js";
import { createRestoredEvents } from "./event-log.js";
import { isAlive, isSessionThere } from "./liveness.js";
import type { Records } from "./records.js";
import type { SessionIndex } from "./session-index.js";

export interface TransferParts {
  readonly environment: Environment;
  readonly applications: Records<ApplicationRecord>;
  readonly sessions: Records<SessionRecord>;
  readonly index: ApplicationIndex;
  readonly ends: EndIndex;
  readonly foreignKeys: ForeignKeyIndex;
  readonly sessionIndex: SessionIndex;
  readonly log: ChangeLog;
  readonly events: EventLog;
  readonly clock: Clock;
}

/** How records of one kind are imported within one transaction. */
interface Importer<R> {
  readonly judge: (record: R, replace: boolean) => ImportOutcome;
  readonly put: (record: R, outcome: ImportOutcome) => void;
}

export function createTransfer(parts: TransferParts): TransferStore {
  const { environment, applications, sessions, index, ends, foreignKeys, sessionIndex } = parts;
  const { log, events, clock } = parts;
  const { read, write } = environment;

  /** Reads records that follow an id and are there; those that are not may be many. */
  async function readOn<R extends { readonly id: string; readonly version: number }>(
    records: Records<R>,
    isThere: (record: R) => boolean,
    after: string | undefined,
    limit: number,
  ): Promise<readonly R[]> {
    let last = after;
    for (;;) {
      const { end, found } = read(() => {
        const all = records.after(last, limit);
        return { end: all.at(-1), found: all.filter(isThere) };
      });
      if (found.length > 0 || end === undefined) {
        return found;
      }
      last = end.id;
      await waitForNextTick();
    }
  }

  function isThere(session: SessionRecord): boolean {
    return isSessionThere(withApplications(session, applications.find), clock());
  }

  /** Imports in one transaction: few records, so that others need not wait long behind them. */
  async function importAll<R>(
    records: readonly R[],
    options: ImportOptions,
    begin: () => Importer<R>,
  ): Promise<ImportOutcome[]> {
    const foreseen = read(() => {
      const { judge } = begin();
      return records.map((record) => judge(record, options.replace));
    });
    // To write nothing would keep others from writing all the same.
    if (options.dryRun || !foreseen.some(isWritten)) {
      return foreseen;
    }
    return write(() => {
      const { judge, put } = begin();
      return records.map((record) => {
        const outcome = judge(record, options.replace);
        if (isWritten(outcome)) {
          put(record, outcome);
        }
        return outcome;
      });
    });
  }

  function judging(
    { tenantId, id }: ImportedApplication | ImportedSession,
    replace: boolean,
  ): Judging {
    const hasEvent = (kinds: readonly string[]) =>
      kinds.some((kind) => events.has({ tenantId, target: id, kind }));
    return { replace, now: clock(), hasEvent };
  }

  function judgeApplication(record: ImportedApplication, replace: boolean): ImportOutcome {
    const there = applications.find(record.id);
    const outcome = outcomeOfApplication(there, record, judging(record, replace));
    return isWritten(outcome) && hasTakenKey(record) ? "taken" : outcome;
  }

  function hasTakenKey({ id, keys }: ImportedApplication): boolean {
    const owners = keys.flatMap(({ foreign, hash }) => (foreign ? foreignKeys.ownersOf(hash) : []));
    return owners.some((owner) => owner !== id && isAlive(applications.find(owner), clock()));
  }

  function putApplication(record: ImportedApplication, outcome: ImportOutcome): void {
    const before = applications.find(record.id);
    const merged = mergeApplication(before, record);
    const after = applications.put(before ? { ...merged, version: before.version } : merged);
    if (before) {
      index.remove(before);
    }
    index.add(after);
    ends.move(before, after);
    foreignKeys.move(before, after);
    if (before && before.sessionEpoch !== after.sessionEpoch) {
      sessionIndex.sweepLater(after.id);
    }
    if (before && outcome === "replaced") {
      const kind = hasOtherKeys(before, after) ? "regenerated" : "updated";
      log.append(after.tenantId, { kind, applicationId: after.id, at: clock() });
    }
  }

  function judgeSession(record: ImportedSession, replace: boolean): ImportOutcome {
    const now = clock();
    const owners = applicationIdsOf(record).map(applications.find);
    if (!owners.every((owner) => isAlive(owner, now) && owner.tenantId === record.tenantId)) {
      return "ownerless";
    }
    return outcomeOfSession(sessions.find(record.id), record, judging(record, replace));
  }

  function putSession(record: ImportedSession, outcome: ImportOutcome): void {
    const before = sessions.find(record.id);
    const merged = mergeSession(before, record);
    const after = sessions.put(before ? { ...merged, version: before.version } : merged);
    if (before) {
      sessionIndex.remove(before);
    }
    sessionIndex.add(after);
    if (before && outcome === "replaced") {
      const { id: sessionId, applicationId, tenantId, authorizedAt } = after;
      const isNew = authorizedAt !== undefined && before.authorizedAt === undefined;
      const kind = isNew ? "authorized" : "updated";
      log.append(tenantId, { kind, applicationId, sessionId, at: clock() });
    }
  }

  function beginEvents(): Importer<EventRecord> {
    const { find, restore } = createRestoredEvents(events);
    return { judge: (record) => outcomeOfEvent(find(record), record), put: restore };
  }

  return {
    exportApplications: (after, limit) =>
      readOn(applications, (record) => isAlive(record, clock()), after, limit),

    exportSessions: (after, limit) => readOn(sessions, isThere, after, limit),

    // One that is not there any more was among the oldest, which go first.
    async exportEvents(after, limit) {
      return read(() => {
        const number = (after && events.numberOf(after)) ?? 0;
        return events.after(number, limit).map(({ event }) => event());
      });
    },

    importApplications: (records, options) =>
      importAll(records, options, () => ({ judge: judgeApplication, put: putApplication })),

    importSessions: (records, options) =>
      importAll(records, options, () => ({ judge: judgeSession, put: putSession })),

    importEvents: (records, options) => importAll(records, options, beginEvents),
  };
}
