import type { EventRecord } from "../store/events.js";
import type { Store } from "../store/store.js";
import type {
  ImportedApplication,
  ImportedSession,
  ImportOptions,
  ImportOutcome,
} from "../store/transfer.js";
import { createForesight } from "./foresight.js";
import type { Item, RecordKind } from "./format.js";
import type { ImportReport } from "./import-report.js";

export interface BatchWriterOptions extends ImportOptions {
  readonly store: Pick<Store, "transfer" | "now">;
  readonly report: ImportReport;
  /** Called with what is done. */
  readonly onProgress: (records: number, bytes: number) => void;
}

/** Writes records to the store, some at a time, in their order. */
export interface BatchWriter {
  /** Takes a record, and resolves when it may be given the next. */
  add(item: NumberedItem): Promise<void>;
  /** Resolves when all is written. */
  flush(): Promise<void>;
}

/** A record, and the line that it came from. */
export interface NumberedItem {
  readonly line: number;
  readonly bytes: number;
  readonly item: Item;
}

/** Records written at a time, and how many bytes of the file they may be. */
const mostRecords = 200;
const mostBytes = 4 * 1024 * 1024;

export function createBatchWriter(options: BatchWriterOptions): BatchWriter {
  const { store, report, onProgress, dryRun } = options;
  const foresee = dryRun ? createForesight() : undefined;
  let batch: NumberedItem[] = [];
  let size = 0;
  let writing: Promise<void> = Promise.resolve();

  /** Begins to write what was gathered, when what was before is written. The next is gathered meanwhile. */
  async function send(): Promise<void> {
    const ready = batch;
    const bytes = size;
    batch = [];
    size = 0;
    await writing;
    writing = write(ready).then(() => onProgress(ready.length, bytes));
    // Whoever waits for it next is told.
    writing.catch(() => {});
  }

  async function write(items: readonly NumberedItem[]): Promise<void> {
    const now = await store.now();
    const alive = items.filter(({ item }) => !hasEnded(item, now));
    for (const { item } of items.filter(({ item }) => hasEnded(item, now))) {
      report.note(item.kind, "expired");
    }
    const outcomes = await importBatch(
      store.transfer,
      alive.map(({ item }) => item),
      options,
    );
    for (const [at, { line, item }] of alive.entries()) {
      const outcome = outcomes[at] as ImportOutcome;
      tell(line, item, foresee ? foresee(item, outcome) : outcome);
    }
  }

  function tell(line: number, item: Item, outcome: ImportOutcome): void {
    if (outcome === "differs" || outcome === "taken") {
      report.noteConflict(item.kind, line, item.record.id, outcome);
    } else {
      report.note(item.kind, outcome);
    }
  }

  return {
    async add(one) {
      const isFull = batch.length === mostRecords || size + one.bytes > mostBytes;
      if (batch.length > 0 && (isFull || batch[0]?.item.kind !== one.item.kind)) {
        await send();
      }
      batch.push(one);
      size += one.bytes;
    },

    async flush() {
      await send();
      await writing;
    },
  };
}

function hasEnded({ kind, record }: Item, now: number): boolean {
  return kind !== "event" && record.expiresAt !== undefined && record.expiresAt <= now;
}

/** Imports records of one kind. */
async function importBatch(
  transfer: Store["transfer"],
  items: readonly Item[],
  options: ImportOptions,
): Promise<readonly ImportOutcome[]> {
  const importers: Record<RecordKind, () => Promise<readonly ImportOutcome[]>> = {
    application: () =>
      transfer.importApplications(records as readonly ImportedApplication[], options),
    session: () => transfer.importSessions(records as readonly ImportedSession[], options),
    event: () => transfer.importEvents(records as readonly EventRecord[], options),
  };
  const records = items.map(({ record }) => record);
  const [first] = items;
  return first ? importers[first.kind]() : [];
}
