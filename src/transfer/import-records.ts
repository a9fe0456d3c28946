import { Problem } from "../errors.js";
import { type BatchWriterOptions, createBatchWriter } from "./batch-writer.js";
import { odditiesOfApplication } from "./check-record.js";
import { formatNumber, type Item, type Line } from "./format.js";
import type { ImportReport } from "./import-report.js";
import { unknownPeppers } from "./pepper-checks.js";
import { readHeader, readLine } from "./read-line.js";
import type { SplitLine } from "./split-lines.js";
import { visible } from "./visible.js";

export interface ImportRecordsOptions extends BatchWriterOptions {
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
