import { Problem } from "../errors.js";
import { visible } from "../lib/printable.js";
import type { EventRecord } from "../store/port/events.js";
import type { Store } from "../store/port/store.js";
import type {
  ImportedApplication,
  ImportedSession,
  ImportOptions,
  ImportOutcome,
} from "../store/port/transfer.js";
import { odditiesOfApplication, unknownPeppers } from "./checks.js";
import { formatNumber, type Item, type Line, type RecordKind } from "./format.js";
import type { ImportReport } from "./import-report.js";
import { readHeader, readLine, type SplitLine } from "./lines.js";

interface ImportRecordsOptions extends BatchWriterOptions {
  readonly lines: AsyncIterable<SplitLine>;
  readonly peppers: readonly string[];
}

/**
 * Imports all records of a file that can be read, and reports what became of
 * each, and of the lines that cannot. Throws where the file is no export, its
 * keys would not work here, or the store cannot be reached.
 */
export async function importRecords(options: ImportRecordsOptions): Promise<void> {
  const { lines, peppers, report, onProgress } = options;
  const writer = createBatchWriter(options);
  let hasHeader = false;
  let records = 0;
  let announced: number | undefined;

  for await (const line of lines) {
    if (!hasHeader) {
      checkHeader(line, peppers);
      hasHeader = true;
      continue;
    }
    if (isBlank(line)) {
      continue;
    }
    const read = announced === undefined ? attempt(line) : "comes after the end of the export";
    if (typeof read === "string") {
      report.noteFault(line.number, read);
      onProgress(0, line.bytes.length);
      records++;
    } else if (read.kind === "end") {
      announced = read.counts.applications + read.counts.sessions + read.counts.events;
    } else {
      noteOddities(line.number, read, report);
      await writer.add({ line: line.number, bytes: line.bytes.length + 1, item: read });
      records++;
    }
  }
  await writer.flush();
  if (!hasHeader) {
    throw new Error("It is empty, and no export.");
  }
  checkEnd(records, announced, report);
}

/** Throws where the file is not for this version, or its keys would not work here. */
function checkHeader(line: SplitLine, peppers: readonly string[]): void {
  const header = attemptHeader(line);
  if (header.format !== formatNumber) {
    throw new Error(
      `It is of format ${header.format}, and this version reads ${formatNumber}: use the version that it was made for.`,
    );
  }
  const { pepperChecks: checks = [] } = header;
  const unknown = unknownPeppers(checks, peppers);
  if (unknown.length > 0) {
    throw new Error(
      `Of the ${checks.length} items that KEY_PEPPER had there, ${unknown.length} are missing here (${unknown.map((place) => `number ${place}`).join(", ")}), and keys that were hashed with them would not work: add them to KEY_PEPPER, or set it to what it was there.`,
    );
  }
}

function attemptHeader(line: SplitLine) {
  try {
    return readHeader(line.bytes);
  } catch (error) {
    throw new Error(
      `It is no export, whose first line begins with {"latchkey_export":${formatNumber} (${reasonOf(error)}).`,
    );
  }
}

const blanks = Buffer.from(" \t\r");

/** Whether there is nothing in a line, as editors leave it at the end. */
function isBlank({ bytes, isTooLong }: SplitLine): boolean {
  return !isTooLong && bytes.every((byte) => blanks.includes(byte));
}

/** Reads a line, or says what is wrong with it. */
function attempt(line: SplitLine): Line | string {
  if (line.isTooLong) {
    return "is longer than any record";
  }
  try {
    return readLine(line.bytes);
  } catch (error) {
    return line.isWhole ? reasonOf(error) : "is cut off";
  }
}

function noteOddities(number: number, { kind, record }: Item, report: ImportReport): void {
  const [oddity] = kind === "application" ? odditiesOfApplication(record) : [];
  if (oddity) {
    report.noteOddity(number, record.id, `${oddity.field}: ${oddity.message}`);
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof Problem) {
    return visible(error.rawMessage.replace(/^(request|line): /, ""));
  }
  throw error;
}

function checkEnd(records: number, announced: number | undefined, report: ImportReport): void {
  if (announced === undefined) {
    report.noteTrouble(
      "It has no last line, so it was cut off: export it again, and import that. What is in it is imported.",
    );
  } else if (announced !== records) {
    report.noteTrouble(
      `It has ${records} records, and its last line tells of ${announced}: lines of it are missing or were added.`,
    );
  }
}

interface BatchWriterOptions extends ImportOptions {
  readonly store: Pick<Store, "transfer" | "now">;
  readonly report: ImportReport;
  /** Called with what is done. */
  readonly onProgress: (records: number, bytes: number) => void;
}

/** Writes records to the store, some at a time, in their order. */
interface BatchWriter {
  /** Takes a record, and resolves when it may be given the next. */
  add(item: NumberedItem): Promise<void>;
  /** Resolves when all is written. */
  flush(): Promise<void>;
}

/** A record, and the line that it came from. */
interface NumberedItem {
  readonly line: number;
  readonly bytes: number;
  readonly item: Item;
}

/** Records written at a time, and how many bytes of the file they may be. */
const mostRecords = 200;
const mostBytes = 4 * 1024 * 1024;

function createBatchWriter(options: BatchWriterOptions): BatchWriter {
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

/** What would become of a record, by what the store answers in a dry run. */
type Foresee = (item: Item, outcome: ImportOutcome) => ImportOutcome;

/** Remembers what would be in the store by now: it makes a difference to what comes later in the file. */
function createForesight(): Foresee {
  const applications = new Set<string>();
  /** The applications that foreign keys would belong to, by the hash of the key. */
  const owners = new Map<string, string>();

  return (item, outcome) => {
    if (item.kind === "session") {
      const isComing = outcome === "ownerless" && applications.has(item.record.applicationId);
      return isComing ? "added" : outcome;
    }
    if (item.kind === "event" || (outcome !== "added" && outcome !== "replaced")) {
      return outcome;
    }
    const { id, keys } = item.record;
    const hashes = keys.filter(({ foreign }) => foreign).map(({ hash }) => textOf(hash));
    if (hashes.some((hash) => (owners.get(hash) ?? id) !== id)) {
      return "taken";
    }
    applications.add(id);
    for (const hash of hashes) {
      owners.set(hash, id);
    }
    return outcome;
  };
}

function textOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString("base64");
}
