import { readLive } from "../core/live-records.js";
import { parentIdsOf } from "../core/liveness.js";
import type { RecordReader } from "../core/record-reader.js";
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
} from "../port/records.js";
import type { Clock } from "../port/store.js";
import type { ImportOptions, ImportOutcome, TransferStore } from "../port/transfer.js";
import { ownersOf } from "./applications.js";
import { isExternalIdTaken } from "./change.js";
import type { Environment } from "./environment.js";
import { createRestoredEvents, type EventLog } from "./event-log.js";
import type { RecordStore } from "./record-store.js";

interface TransferParts {
  readonly environment: Environment;
  readonly records: RecordStore;
  readonly reader: RecordReader;
  readonly events: EventLog;
  readonly clock: Clock;
}

/** Imports records of one kind within one transaction. */
interface Importer<R> {
  readonly decide: (record: R, replace: boolean) => ImportOutcome;
  readonly put: (record: R, outcome: ImportOutcome) => void;
}

export function createTransfer(parts: TransferParts): TransferStore {
  const { environment, records, reader, events, clock } = parts;
  const { read, write } = environment;

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
    const stored = records.find("application", record.id);
    const outcome = outcomeOfApplication(stored, record, importContext(record, replace));
    if (!isWritten(outcome)) {
      return outcome;
    }
    if (hasTakenKey(record)) {
      return "key_taken";
    }
    return isExternalIdTaken(records, record, clock()) ? "external_id_taken" : outcome;
  }

  function hasTakenKey({ id, keys }: ApplicationFields): boolean {
    const owners = keys.flatMap(({ imported, hash }) =>
      imported ? records.indexes.ids(ownersOf(hash)) : [],
    );
    const isLive = (owner: string) => isUnexpired(records.find("application", owner), clock());
    return owners.some((owner) => owner !== id && isLive(owner));
  }

  function putApplication(record: ApplicationFields, outcome: ImportOutcome): void {
    const before = records.find("application", record.id);
    const after = withNextVersion(before, mergeApplication(before, record));
    records.write("application", before, after);
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
    const isOwner = (id: string) => {
      const owner = records.find("application", id);
      return isUnexpired(owner, now) && owner.tenantId === record.tenantId;
    };
    const stored = records.find("session", record.id);
    return parentIdsOf("session", record).every(isOwner)
      ? outcomeOfSession(stored, record, importContext(record, replace))
      : "ownerless";
  }

  function putSession(record: SessionFields, outcome: ImportOutcome): void {
    const before = records.find("session", record.id);
    const after = withNextVersion(before, mergeSession(before, record));
    records.write("session", before, after);
    if (outcome === "replaced") {
      events.append(importEvent(after));
    }
  }

  function createEventImporter(): Importer<EventRecord> {
    const { find, restore } = createRestoredEvents(events);
    return { decide: (record) => outcomeOfEvent(find(record), record), put: restore };
  }

  return {
    exportApplications: (after, limit) => readLive(reader, "application", after, limit),
    exportSessions: (after, limit) => readLive(reader, "session", after, limit),

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
