import { createHash } from "node:crypto";
import { readSettings, type Settings } from "../config/settings.js";
import { openStoreThere } from "../store/open-store.js";
import type { Store } from "../store/port/store.js";
import { pepperChecks } from "../transfer/checks.js";
import { exportRecords, headerLine } from "../transfer/export.js";
import { type Counts, noCounts } from "../transfer/format.js";
import { type ExportTarget, openPartFile } from "../transfer/partial-file.js";
import { type Progress, sizeText, startProgress } from "../transfer/progress.js";
import { CommandFailure } from "./errors.js";

interface ExportFlags {
  /** The file to write; stdout where there is none. */
  readonly output?: string;
  readonly resume?: boolean;
  readonly events: boolean;
  readonly json?: boolean;
}

/** Writes all that the store holds to a file or to stdout. */
export async function exportCommand(flags: ExportFlags): Promise<void> {
  const settings = readSettings();
  const { output, resume = false, json = false } = flags;
  if (resume && output === undefined) {
    throw new CommandFailure("--resume goes on with a file: name it by --output.", "usage");
  }
  if (json && output === undefined) {
    throw new CommandFailure(
      "--json tells what came of an export to a file: name it by --output. What is exported is JSON already.",
      "usage",
    );
  }
  const store = await openStoreThere(settings);
  try {
    const target = output === undefined ? toStdout() : await openPartFile(output, resume);
    try {
      checkSource(target, store);
      checkChoice(target, flags);
      await exportWatched(target, store, settings, flags);
    } finally {
      await target.close();
    }
  } finally {
    await store.close();
  }
}

/** Exports, and tells on stderr how far it is and what came of it. */
async function exportWatched(
  target: ExportTarget,
  store: Store,
  settings: Settings,
  flags: ExportFlags,
): Promise<void> {
  const { stderr } = process;
  const isFile = flags.output !== undefined;
  const progress = startProgress({ word: "exported", stream: stderr, tellsUnwatched: isFile });
  try {
    const written = await exportTo(target, store, settings, flags, progress);
    progress.stop();
    if (flags.json) {
      process.stdout.write(`${JSON.stringify({ ...written.counts, bytes: written.bytes })}\n`);
    } else if (isFile || stderr.isTTY) {
      stderr.write(`${summary(written)}\n`);
    }
  } catch (error) {
    progress.stop();
    throw isFile ? resumable(error) : error;
  }
}

interface Written {
  readonly counts: Counts;
  readonly bytes: number;
}

async function exportTo(
  target: ExportTarget,
  store: Store,
  { store: { kind }, peppers }: Settings,
  { events }: ExportFlags,
  progress: Progress,
): Promise<Written> {
  const { before } = target;
  let counts = before?.place.counts ?? noCounts();
  let bytes = 0;

  async function write(text: string, records: number): Promise<void> {
    await target.write(text);
    const size = Buffer.byteLength(text);
    bytes += size;
    progress.advance(records, size);
  }

  if (!before) {
    const exportedAt = await store.now();
    const [source, checks] = [sourceOf(store), pepperChecks(peppers)];
    const choice = events ? {} : { events };
    await write(
      headerLine({ exportedAt, store: kind, source, ...choice, pepperChecks: checks }),
      0,
    );
  }
  if (!before?.isWhole) {
    const parts = exportRecords({ store, withEvents: events, from: before?.place });
    for await (const part of parts) {
      await write(part.text, total(part.counts) - total(counts));
      counts = part.counts;
    }
  }
  await target.finish();
  return { counts, bytes };
}

/** Throws where an export of other data was begun. */
function checkSource({ before }: ExportTarget, store: Store): void {
  if (before && before.header.source !== sourceOf(store)) {
    throw new Error(
      "The export that was begun is of other data: remove it, or let the settings name the store that it is of.",
    );
  }
}

/** Throws where it was begun with another choice of what is in it. */
function checkChoice({ before }: ExportTarget, { events }: ExportFlags): void {
  if (before && (before.header.events ?? true) !== events) {
    throw new Error(
      `The export that was begun is one ${events ? "without" : "with"} events: go on with it ${events ? "by" : "without"} --no-events, or remove it.`,
    );
  }
}

/** Tells these data from others, and nothing of their id, which is known to the service only. */
function sourceOf({ id }: Store): string {
  return createHash("sha256").update(`latchkey export of ${id}`).digest("base64");
}

function toStdout(): ExportTarget {
  const { stdout } = process;
  // Who writes is told by its callback.
  stdout.on("error", () => {});
  return {
    write: (text) =>
      new Promise((resolve, reject) => {
        stdout.write(text, (error) => (error ? reject(error) : resolve()));
      }),
    async finish() {},
    async close() {},
  };
}

function total({ applications, sessions, events }: Counts): number {
  return applications + sessions + events;
}

function summary({ counts, bytes }: Written): string {
  const { applications, sessions, events } = counts;
  return `exported ${applications} applications, ${sessions} sessions and ${events} events: ${sizeText(bytes)} written`;
}

function resumable(error: unknown): Error {
  const { message } = error as Error;
  return new Error(
    `${message.replace(/\.$/, "")}. What is exported so far is kept: go on with it by --resume.`,
  );
}
