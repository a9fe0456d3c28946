import { createHash } from "node:crypto";
import { readSettings, type Settings } from "../config/settings.js";
import { countOf } from "../lib/terminal.js";
import { openExistingStore } from "../store/open-store.js";
import type { Store } from "../store/port/store.js";
import { pepperChecks } from "../transfer/checks.js";
import { exportRecords, headerLine } from "../transfer/export.js";
import { type Counts, noCounts } from "../transfer/format.js";
import { type ExportTarget, openPartialFile } from "../transfer/partial-file.js";
import { formatSize, type Progress, startProgress } from "../transfer/progress.js";
import { CommandError } from "./errors.js";
import { requireReader } from "./stdio.js";

interface ExportFlags {
  /** The file to write; stdout by default. */
  readonly output?: string;
  readonly resume?: boolean;
  readonly events: boolean;
  readonly json?: boolean;
}

/** Writes all records of the store to a file or to stdout. */
export async function exportCommand(flags: ExportFlags): Promise<void> {
  const settings = readSettings();
  const { output, resume = false, json = false } = flags;
  if (resume && output === undefined) {
    throw new CommandError("--resume requires --output.", "usage");
  }
  if (json && output === undefined) {
    throw new CommandError(
      "--json requires --output: it prints a summary of the export. The export itself is always JSON.",
      "usage",
    );
  }
  const store = await openExistingStore(settings);
  try {
    const target =
      output === undefined ? createStdoutTarget() : await openPartialFile(output, resume);
    try {
      assertSameSource(target, store);
      assertSameEventsOption(target, flags);
      await exportWithProgress(target, store, settings, flags);
    } finally {
      await target.close();
    }
  } finally {
    await store.close();
  }
}

/** Exports with progress and a summary on stderr. */
async function exportWithProgress(
  target: ExportTarget,
  store: Store,
  settings: Settings,
  flags: ExportFlags,
): Promise<void> {
  const { stderr } = process;
  const isFile = flags.output !== undefined;
  const progress = startProgress({
    verb: "exported",
    stream: stderr,
    printsWithoutTerminal: isFile,
  });
  try {
    const result = await exportTo(target, store, settings, flags, progress);
    progress.stop();
    if (flags.json) {
      process.stdout.write(`${JSON.stringify({ ...result.counts, bytes: result.bytes })}\n`);
    } else if (isFile || stderr.isTTY) {
      stderr.write(`${formatSummary(result)}\n`);
    }
  } catch (error) {
    progress.stop();
    throw isFile ? withResumeHint(error) : error;
  }
}

interface ExportResult {
  readonly counts: Counts;
  readonly bytes: number;
}

async function exportTo(
  target: ExportTarget,
  store: Store,
  { store: { kind }, peppers }: Settings,
  { events }: ExportFlags,
  progress: Progress,
): Promise<ExportResult> {
  const { before } = target;
  let counts = before?.position.counts ?? noCounts();
  let bytes = 0;

  async function write(text: string, records: number): Promise<void> {
    await target.write(text);
    const size = Buffer.byteLength(text);
    bytes += size;
    progress.advance(records, size);
  }

  if (!before) {
    const exportedAt = await store.now();
    const source = hashStoreId(store);
    await write(
      headerLine({
        exportedAt,
        store: kind,
        source,
        ...(!events && { events }),
        pepperChecks: pepperChecks(peppers),
      }),
      0,
    );
  }
  if (!before?.isComplete) {
    const parts = exportRecords({ store, withEvents: events, from: before?.position });
    for await (const part of parts) {
      await write(part.text, countRecords(part.counts) - countRecords(counts));
      counts = part.counts;
    }
  }
  await target.finish();
  return { counts, bytes };
}

/** An export can be resumed only from the same store. */
function assertSameSource({ before }: ExportTarget, store: Store): void {
  if (before && before.header.source !== hashStoreId(store)) {
    throw new Error(
      "The interrupted export is from another store. Delete it, or use the settings of that store.",
    );
  }
}

/** An export can be resumed only with the same --no-events option. */
function assertSameEventsOption({ before }: ExportTarget, { events }: ExportFlags): void {
  if (before && (before.header.events ?? true) !== events) {
    throw new Error(
      `The interrupted export is ${events ? "without" : "with"} events. Resume it ${events ? "with" : "without"} --no-events, or delete it.`,
    );
  }
}

/** Identifies the store without revealing its id. */
function hashStoreId({ id }: Store): string {
  return createHash("sha256").update(`latchkey export of ${id}`).digest("base64");
}

function createStdoutTarget(): ExportTarget {
  const { stdout } = process;
  requireReader("The export is not complete.");
  return {
    write: (text) =>
      new Promise((resolve, reject) => {
        stdout.write(text, (error) => (error ? reject(error) : resolve()));
      }),
    async finish() {},
    async close() {},
  };
}

function countRecords({ applications, sessions, events }: Counts): number {
  return applications + sessions + events;
}

function formatSummary({ counts, bytes }: ExportResult): string {
  const applications = countOf(counts.applications, "application");
  const sessions = countOf(counts.sessions, "session");
  const events = countOf(counts.events, "event");
  return `exported ${applications}, ${sessions} and ${events}: ${formatSize(bytes)} written`;
}

function withResumeHint(error: unknown): Error {
  const { message } = error as Error;
  return new Error(
    `${message.replace(/\.$/, "")}. Run the command again with --resume to continue.`,
  );
}
