import { createImportDecisions, type ImportDecision } from "../core/import.js";
import { readLive } from "../core/live-records.js";
import type { RecordReader } from "../core/record-reader.js";
import type { RecordKind, Records } from "../port/change.js";
import { isWritten, outcomeOfEvent } from "../port/import.js";
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

export function createTransfer(parts: TransferParts): TransferStore {
  const { environment, records, reader, events, clock } = parts;
  const { read, write } = environment;

  const decisions = createImportDecisions({
    now: clock,
    find: records.find,
    ownersOfKey: (hash) => records.indexes.ids(ownersOf(hash)),
    isExternalIdTaken: (application) => isExternalIdTaken(records, application, clock()),
    hasEvent: ({ tenantId, id }, kinds) => events.has({ tenantId, target: id, kinds }),
  });

  /**
   * Imports a batch in one transaction. Callers keep batches small, so that other writes do not
   * wait long. `importOne` decides about a record, and writes it unless it is only a dry run.
   */
  async function importAll<R>(
    imported: readonly R[],
    { dryRun }: ImportOptions,
    createImporter: () => (record: R, isDryRun: boolean) => ImportOutcome,
  ): Promise<ImportOutcome[]> {
    const importBatch = (isDryRun: boolean) => {
      const importOne = createImporter();
      return imported.map((record) => importOne(record, isDryRun));
    };
    const expected = read(() => importBatch(true));
    // An empty transaction would still block other writers.
    return dryRun || !expected.some(isWritten) ? expected : write(() => importBatch(false));
  }

  function importRecords<K extends RecordKind>(
    kind: K,
    imported: readonly Omit<Records[K], "version">[],
    options: ImportOptions,
  ): Promise<ImportOutcome[]> {
    const decide = decisions[kind] as (
      record: (typeof imported)[number],
      options: ImportOptions,
    ) => ImportDecision<K>;
    return importAll(imported, options, () => (record, isDryRun) => {
      const { outcome, before, after, event } = decide(record, options);
      if (after && !isDryRun) {
        records.write(kind, before, after);
      }
      if (event && !isDryRun) {
        events.append(event);
      }
      return outcome;
    });
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

    importApplications: (imported, options) => importRecords("application", imported, options),
    importSessions: (imported, options) => importRecords("session", imported, options),

    importEvents: (imported, options) =>
      importAll(imported, options, () => {
        const { find, restore } = createRestoredEvents(events);
        return (event, isDryRun) => {
          const outcome = outcomeOfEvent(find(event), event);
          if (isWritten(outcome) && !isDryRun) {
            restore(event);
          }
          return outcome;
        };
      }),
  };
}
