import { type FileHandle, open } from "node:fs/promises";
import { readSettings, type Settings } from "../config/settings.js";
import { openStore, openStoreForReading } from "../store/open-store.js";
import { StoreUnavailable } from "../store/port/errors.js";
import { splitLines } from "../transfer/format.js";
import { importRecords } from "../transfer/import.js";
import { createImportReport, type ImportReport } from "../transfer/import-report.js";
import { startProgress } from "../transfer/progress.js";
import { exitCodes, fileReason } from "./errors.js";

interface ImportFlags {
  readonly dryRun?: boolean;
  readonly replace?: boolean;
  readonly json?: boolean;
}

/** Imports a file, or stdin (`-`). The exit code is 1 if a record could not be imported. */
export async function importCommand(path: string, flags: ImportFlags): Promise<void> {
  const settings = readSettings();
  const file = path === "-" ? undefined : await openFile(path);
  try {
    const isComplete = await importFrom(settings, path, file, flags);
    process.exitCode = exitCodes[isComplete ? "success" : "failed"].code;
  } finally {
    await file?.close();
  }
}

async function importFrom(
  settings: Settings,
  path: string,
  file: FileHandle | undefined,
  { dryRun = false, replace = false, json = false }: ImportFlags,
): Promise<boolean> {
  const size = (await file?.stat())?.size;
  const chunks = file?.createReadStream({ highWaterMark: chunkSize, autoClose: false });
  const report = createImportReport({ replace });
  const store = await (dryRun ? openStoreForReading : openStore)(settings);
  const progress = startProgress({
    verb: dryRun ? "checked" : "imported",
    totalBytes: size,
    stream: process.stderr,
    printsWithoutTerminal: true,
  });
  try {
    await importRecords({
      lines: splitLines(chunks ?? process.stdin),
      store,
      peppers: settings.peppers,
      grantsLimit: settings.grantsLimit,
      dryRun,
      replace,
      report,
      onProgress: progress.advance,
    });
    return report.isSuccess();
  } catch (error) {
    throw toImportError(error, path === "-" ? "stdin" : path);
  } finally {
    progress.stop();
    await store.close();
    printReport(report, dryRun, json);
  }
}

/** Bytes per read. */
const chunkSize = 1024 * 1024;

async function openFile(path: string): Promise<FileHandle> {
  return open(path).catch((error) => {
    throw new Error(`Cannot read ${path}: ${fileReason(error)}`);
  });
}

function toImportError(error: unknown, source: string): Error {
  const { message } = error as Error;
  const hint =
    error instanceof StoreUnavailable ? " Import it again: existing records are skipped." : "";
  return new Error(`${source}: ${message}${hint}`, { cause: error });
}

/** Prints the errors and the summary, unless no line was read. */
function printReport(report: ImportReport, dryRun: boolean, json: boolean): void {
  if (report.isEmpty()) {
    return;
  }
  for (const problem of report.messages()) {
    process.stderr.write(`latchkey: ${problem}\n`);
  }
  process.stdout.write(
    json ? `${JSON.stringify(report.toJson(dryRun))}\n` : report.summary(dryRun),
  );
}
