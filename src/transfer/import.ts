import { Problem } from "../errors.js";
import { escapeUnprintable } from "../lib/terminal.js";
import type { EventRecord } from "../store/port/events.js";
import { isWritten } from "../store/port/import.js";
import { type ApplicationFields, isUnexpired, type SessionFields } from "../store/port/records.js";
import type { Store } from "../store/port/store.js";
import type { ImportOptions, ImportOutcome } from "../store/port/transfer.js";
import { unknownPeppers } from "./checks.js";
import {
  formatVersion,
  type Item,
  maxLineBytes,
  parseHeaderLine,
  parseRecordLine,
  type RecordKind,
  type SplitLine,
} from "./format.js";
import { type ImportReport, isConflict } from "./import-report.js";

interface ImportRecordsOptions extends BatchWriterOptions {
  readonly lines: AsyncIterable<SplitLine>;
  readonly peppers: readonly string[];
  /** The most bytes that the grants of one application or session take. */
  readonly grantsLimit: number;
}

/**
 * Imports all valid records of a file, and reports the outcome of each, and all
 * invalid lines. Throws if the file is not an export, if its keys would not work
 * here, or if the store is unavailable.
 */
export async function importRecords(options: ImportRecordsOptions): Promise<void> {
  const { lines, peppers, grantsLimit, report, onProgress } = options;
  const writer = createBatchWriter(options);
  let hasHeader = false;
  let records = 0;
  let announced: number | undefined;

  for await (const line of lines) {
    if (!hasHeader) {
      assertUsableHeader(line, peppers);
      hasHeader = true;
      continue;
    }
    if (isBlank(line)) {
      continue;
    }
    const parsed =
      announced === undefined ? parseLine(line, grantsLimit) : "follows the end of the export";
    if (typeof parsed === "string") {
      report.addInvalidLine(line.number, parsed);
      onProgress(0, line.bytes.length);
      records++;
    } else if (parsed.kind === "end") {
      const { applications, sessions, events } = parsed.record;
      announced = applications + sessions + events;
    } else {
      const { record, warning } = parsed;
      if (warning) {
        report.addWarning(line.number, record.id, `${warning.field}: ${warning.message}`);
      }
      await writer.add({ line: line.number, bytes: line.bytes.length + 1, item: parsed });
      records++;
    }
  }
  await writer.flush();
  if (!hasHeader) {
    throw new Error("The file is not an export: it is empty.");
  }
  reportMissingLines(records, announced, report);
}

/** Throws if the file has another format, or if its keys would not work here. */
function assertUsableHeader(line: SplitLine, peppers: readonly string[]): void {
  const { pepperChecks: checks } = parseHeader(line);
  const unknown = unknownPeppers(checks, peppers);
  if (unknown.length > 0) {
    throw new Error(
      `KEY_PEPPER lacks ${unknown.length} of the ${checks.length} peppers used by the exporting service (number ${unknown.join(" and ")}, newest first). Add them; otherwise keys hashed with them would not work.`,
    );
  }
}

function parseHeader(line: SplitLine) {
  try {
    return parseHeaderLine(line.bytes);
  } catch (error) {
    throw new Error(
      `The file is not an export: its first line must start with {"latchkey_export":${formatVersion} (${reasonOf(error)}).`,
    );
  }
}

const blanks = Buffer.from(" \t\r");

/** Editors may leave blank lines at the end. */
function isBlank({ bytes, isTooLong }: SplitLine): boolean {
  return !isTooLong && bytes.every((byte) => blanks.includes(byte));
}

/** Parses a line, or returns the error message. */
function parseLine(
  line: SplitLine,
  grantsLimit: number,
): ReturnType<typeof parseRecordLine> | string {
  if (line.isTooLong) {
    return `is longer than ${maxLineBytes / 1024 / 1024} MiB`;
  }
  try {
    return parseRecordLine(line.bytes, grantsLimit);
  } catch (error) {
    return line.isComplete ? reasonOf(error) : "is truncated";
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Problem) {
    return escapeUnprintable(error.rawMessage.replace(/^(request|line): /, ""));
  }
  throw error;
}

function reportMissingLines(
  records: number,
  announced: number | undefined,
  report: ImportReport,
): void {
  if (announced === undefined) {
    report.addError(
      "The file is truncated: it has no end line. Its records were imported. Export again, and import the complete file.",
    );
  } else if (announced !== records) {
    report.addError(
      `The file has ${records} records, but its end line counts ${announced}: lines are missing or were added. Export again.`,
    );
  }
}

interface BatchWriterOptions extends ImportOptions {
  readonly store: Pick<Store, "applications" | "transfer" | "now">;
  readonly report: ImportReport;
  readonly onProgress: (records: number, bytes: number) => void;
}

/** Writes records to the store in batches, in order. */
interface BatchWriter {
  /** Resolves when the next record can be added. */
  add(item: NumberedItem): Promise<void>;
  /** Resolves when all records are written. */
  flush(): Promise<void>;
}

/** A record with its line number and size. */
interface NumberedItem {
  readonly line: number;
  readonly bytes: number;
  readonly item: Item;
}

/** Limits of a batch. */
const maxRecords = 200;
const maxBytes = 4 * 1024 * 1024;

function createBatchWriter(options: BatchWriterOptions): BatchWriter {
  const { store, report, onProgress, dryRun } = options;
  const predict = dryRun ? createDryRun(store) : undefined;
  let batch: NumberedItem[] = [];
  let size = 0;
  let writing: Promise<void> = Promise.resolve();

  /** Starts writing the batch after the previous one. The next batch is read meanwhile. */
  async function startBatch(): Promise<void> {
    const ready = batch;
    const bytes = size;
    batch = [];
    size = 0;
    await writing;
    writing = write(ready).then(() => onProgress(ready.length, bytes));
    // The next `await writing` throws the error.
    writing.catch(() => {});
  }

  async function write(items: readonly NumberedItem[]): Promise<void> {
    const now = await store.now();
    const unexpired = items.filter(({ item }) => !hasExpired(item, now));
    for (const { item } of items.filter(({ item }) => hasExpired(item, now))) {
      report.add(item.kind, "expired");
    }
    const outcomes = await importBatch(
      store.transfer,
      unexpired.map(({ item }) => item),
      options,
    );
    for (const [index, { line, item }] of unexpired.entries()) {
      const outcome = outcomes[index] as ImportOutcome;
      reportOutcome(line, item, predict ? await predict(item, outcome) : outcome);
    }
  }

  function reportOutcome(line: number, item: Item, outcome: ImportOutcome): void {
    if (isConflict(outcome)) {
      report.addConflict(item.kind, line, item.record.id, outcome);
    } else {
      report.add(item.kind, outcome);
    }
  }

  return {
    async add(one) {
      const isFull = batch.length === maxRecords || size + one.bytes > maxBytes;
      if (batch.length > 0 && (isFull || batch[0]?.item.kind !== one.item.kind)) {
        await startBatch();
      }
      batch.push(one);
      size += one.bytes;
    },

    async flush() {
      await startBatch();
      await writing;
    },
  };
}

function hasExpired({ kind, record }: Item, now: number): boolean {
  return kind !== "event" && !isUnexpired(record, now);
}

/** Imports records of one kind. */
async function importBatch(
  transfer: Store["transfer"],
  items: readonly Item[],
  options: ImportOptions,
): Promise<readonly ImportOutcome[]> {
  const importers: Record<RecordKind, () => Promise<readonly ImportOutcome[]>> = {
    application: () =>
      transfer.importApplications(records as readonly ApplicationFields[], options),
    session: () => transfer.importSessions(records as readonly SessionFields[], options),
    event: () => transfer.importEvents(records as readonly EventRecord[], options),
  };
  const records = items.map(({ record }) => record);
  const [first] = items;
  return first ? importers[first.kind]() : [];
}

/** Returns the outcome that a record would have, given the outcome that the store returned in a dry run. */
type Predict = (item: Item, outcome: ImportOutcome) => Promise<ImportOutcome>;

/** Tracks the records that the import would have written so far: later records may depend on them. */
function createDryRun({ applications }: Pick<Store, "applications">): Predict {
  /** External ids by the id of their application. */
  const written = new Map<string, string | undefined>();
  /** Application ids by the hash of their imported keys. */
  const owners = new Map<string, string>();
  /** Application ids by tenant and external id. */
  const externalIds = new Map<string, string>();

  /** The outcome of an application whose external id a stored one has, unless that would have another by now. */
  async function predictTaken(record: ApplicationFields): Promise<ImportOutcome> {
    const { id, tenantId, externalId } = record;
    const query = { tenantId, filter: { externalId }, size: 1, from: { page: 1 } };
    const [owner] = (await applications.list(query)).items;
    if (!owner || !written.has(owner.id) || written.get(owner.id) === externalId) {
      return "external_id_taken";
    }
    return (await applications.find(id)) ? "replaced" : "added";
  }

  return async (item, expected) => {
    if (item.kind === "session") {
      const wouldExist = expected === "ownerless" && written.has(item.record.applicationId);
      return wouldExist ? "added" : expected;
    }
    if (item.kind === "event") {
      return expected;
    }
    const { record } = item;
    const outcome = expected === "external_id_taken" ? await predictTaken(record) : expected;
    if (!isWritten(outcome)) {
      return outcome;
    }
    const { id, keys, tenantId, externalId } = record;
    const hashes = keys.filter(({ imported }) => imported).map(({ hash }) => textOf(hash));
    if (hashes.some((hash) => (owners.get(hash) ?? id) !== id)) {
      return "key_taken";
    }
    if (externalId !== undefined) {
      const name = `${tenantId} ${externalId}`;
      if ((externalIds.get(name) ?? id) !== id) {
        return "external_id_taken";
      }
      externalIds.set(name, id);
    }
    written.set(id, externalId);
    for (const hash of hashes) {
      owners.set(hash, id);
    }
    return outcome;
  };
}

function textOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString("base64");
}
