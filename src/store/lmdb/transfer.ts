import { waitForNextTick } from "../../lib/event-loop.js";
import type { EventRecord } from "../port/events.js";
import {
  type ImportContext,
  importEvent,
  isWritten,
  mergeApplication,
  mergeSession,
  outcomeOfApplication,
  outcomeOfEvent,
  outcomeOfSession,
} from "../port/import.js";
import {
  type ApplicationFields,
  isUnexpired,
  nextVersion,
  type SessionFields,
  type SessionRecord,
} from "../port/records.js";
import {
  applicationIdsOf,
  isSessionValid,
  revokesSessions,
  withApplications,
} from "../port/sessions.js";
import type { Clock } from "../port/store.js";
import type { ImportOptions, ImportOutcome, TransferStore } from "../port/transfer.js";
import type { ApplicationIndex, ExpirationIndex, ImportedKeyIndex } from "./application-index.js";
import type { Environment } from "./environment.js";
import { createRestoredEvents, type EventLog } from "./event-log.js";
import type { ApplicationRecords, SessionRecords } from "./records.js";
import type { SessionIndex } from "./session-index.js";

interface TransferParts {
  readonly environment: Environment;
  readonly applications: ApplicationRecords;
  readonly sessions: SessionRecords;
  readonly index: ApplicationIndex;
  readonly expirations: ExpirationIndex;
  readonly importedKeys: ImportedKeyIndex;
  readonly sessionIndex: SessionIndex;
  readonly events: EventLog;
  readonly clock: Clock;
}

/** Imports records of one kind within one transaction. */
interface Importer<R> {
  readonly decide: (record: R, replace: boolean) => ImportOutcome;
  readonly put: (record: R, outcome: ImportOutcome) => void;
}

export function createTransfer(parts: TransferParts): TransferStore {
  const { environment, applications, sessions, index, expirations, importedKeys, sessionIndex } =
    parts;
  const { events, clock } = parts;
  const { read, write } = environment;

  /** Reads valid records after an id. Skips long runs of invalid ones batch by batch. */
  async function readPage<R extends { readonly id: string }>(
    records: { after(id: string | undefined, limit: number): R[] },
    isValid: (record: R) => boolean,
    after: string | undefined,
    limit: number,
  ): Promise<readonly R[]> {
    let last = after;
    for (;;) {
      const { end, found } = read(() => {
        const all = records.after(last, limit);
        return { end: all.at(-1), found: all.filter(isValid) };
      });
      if (found.length > 0 || end === undefined) {
        return found;
      }
      last = end.id;
      await waitForNextTick();
    }
  }

  function isValidSession(session: SessionRecord): boolean {
    return isSessionValid(withApplications(session, applications.find), clock());
  }

  /** Imports a batch in one transaction. Callers keep batches small, so that other writes do not wait long. */
  async function importAll<R>(
    records: readonly R[],
    options: ImportOptions,
    createImporter: () => Importer<R>,
  ): Promise<ImportOutcome[]> {
    const expected = read(() => {
      const { decide } = createImporter();
      return records.map((record) => decide(record, options.replace));
    });
    // An empty transaction would still block other writers.
    if (options.dryRun || !expected.some(isWritten)) {
      return expected;
    }
    return write(() => {
      const { decide, put } = createImporter();
      return records.map((record) => {
        const outcome = decide(record, options.replace);
        if (isWritten(outcome)) {
          put(record, outcome);
        }
        return outcome;
      });
    });
  }

  function importContext(
    { tenantId, id }: ApplicationFields | SessionFields,
    replace: boolean,
  ): ImportContext {
    const hasEvent = (kinds: readonly string[]) => events.has({ tenantId, target: id, kinds });
    return { replace, now: clock(), hasEvent };
  }

  function decideApplication(record: ApplicationFields, replace: boolean): ImportOutcome {
    const stored = applications.find(record.id);
    const outcome = outcomeOfApplication(stored, record, importContext(record, replace));
    if (!isWritten(outcome)) {
      return outcome;
    }
    if (hasTakenKey(record)) {
      return "key_taken";
    }
    const isTaken = index.isExternalIdTaken(record, (id) => {
      const other = applications.find(id);
      return isUnexpired(other, clock()) ? other : undefined;
    });
    return isTaken ? "external_id_taken" : outcome;
  }

  function hasTakenKey({ id, keys }: ApplicationFields): boolean {
    const owners = keys.flatMap(({ imported, hash }) =>
      imported ? importedKeys.ownersOf(hash) : [],
    );
    return owners.some((owner) => owner !== id && isUnexpired(applications.find(owner), clock()));
  }

  function putApplication(record: ApplicationFields, outcome: ImportOutcome): void {
    const before = applications.find(record.id);
    const after = withNextVersion(before, mergeApplication(before, record));
    applications.put(after);
    index.change(before, after);
    expirations.update(before, after);
    importedKeys.update(before, after);
    if (before && revokesSessions(before, after)) {
      sessionIndex.scheduleSweep(after.id);
    }
    if (outcome === "replaced") {
      events.append(importEvent(after));
    }
  }

  function withNextVersion<R extends object>(
    before: { readonly version: number } | undefined,
    fields: R,
  ): R & { readonly version: number } {
    return { ...fields, version: nextVersion(before, clock()) };
  }

  function decideSession(record: SessionFields, replace: boolean): ImportOutcome {
    const now = clock();
    const owners = applicationIdsOf(record).map(applications.find);
    if (!owners.every((owner) => isUnexpired(owner, now) && owner.tenantId === record.tenantId)) {
      return "ownerless";
    }
    return outcomeOfSession(sessions.find(record.id), record, importContext(record, replace));
  }

  function putSession(record: SessionFields, outcome: ImportOutcome): void {
    const before = sessions.find(record.id);
    const after = withNextVersion(before, mergeSession(before, record));
    sessions.put(after);
    sessionIndex.change(before, after);
    if (outcome === "replaced") {
      events.append(importEvent(after));
    }
  }

  function createEventImporter(): Importer<EventRecord> {
    const { find, restore } = createRestoredEvents(events);
    return { decide: (record) => outcomeOfEvent(find(record), record), put: restore };
  }

  return {
    exportApplications: (after, limit) =>
      readPage(applications, (record) => isUnexpired(record, clock()), after, limit),

    exportSessions: (after, limit) => readPage(sessions, isValidSession, after, limit),

    // An event that is no longer stored was pruned as the oldest: continue at the start.
    async exportEvents(after, limit) {
      return read(() => {
        const number = (after && events.numberOf(after)) ?? 0;
        return events.after(number, limit).map(({ event }) => event());
      });
    },

    importApplications: (records, options) =>
      importAll(records, options, () => ({ decide: decideApplication, put: putApplication })),

    importSessions: (records, options) =>
      importAll(records, options, () => ({ decide: decideSession, put: putSession })),

    importEvents: (records, options) => importAll(records, options, createEventImporter),
  };
}
