import { createReadStream } from "node:fs";
import { access, type FileHandle, open, rename } from "node:fs/promises";
import { Problem } from "../errors.js";
import { escapeUnprintable } from "../lib/terminal.js";
import type { ExportPosition } from "./export.js";
import {
  type Counts,
  type Header,
  noCounts,
  parseHeaderLine,
  parseUnchecked,
  recordKinds,
  type SplitLine,
  splitLines,
} from "./format.js";

export interface ExportTarget {
  /** The interrupted export to resume, if any. */
  readonly before?: PartialExport | undefined;
  write(text: string): Promise<void>;
  /** Marks the export as complete. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

interface PartialExport {
  readonly header: Header;
  readonly position: ExportPosition;
  /** Whether the end line is written, so that only the rename is missing. */
  readonly isComplete: boolean;
}

/**
 * Creates a file, or resumes an interrupted one. It is written as `.part`, and
 * renamed when it is complete. An existing file is never overwritten.
 */
export async function openPartialFile(path: string, resume: boolean): Promise<ExportTarget> {
  const partPath = `${path}.part`;
  if (await exists(path)) {
    throw new Error(`${path} already exists. Remove it, or choose another name.`);
  }
  const isPartial = await exists(partPath);
  if (isPartial && !resume) {
    throw new Error(
      `${partPath} exists from an interrupted export. Pass --resume to continue it, or remove it.`,
    );
  }
  const scan = isPartial ? await scanPart(partPath) : undefined;
  // The file has hashes of keys: only the owner may read it.
  const file = await open(partPath, "a", 0o600);
  await file.truncate(scan?.size ?? 0);
  return createPartFile(file, partPath, path, scan?.before);
}

function createPartFile(
  file: FileHandle,
  partPath: string,
  path: string,
  before: PartialExport | undefined,
): ExportTarget {
  return {
    before,

    async write(text) {
      await file.appendFile(text);
    },

    async finish() {
      await file.sync();
      await rename(partPath, path);
    },

    close: () => file.close(),
  };
}

/** The complete lines of an interrupted export, and their size. */
interface Scan {
  readonly size: number;
  readonly before?: PartialExport | undefined;
}

/** Scans all lines, but parses only the first and the last. */
async function scanPart(path: string): Promise<Scan> {
  const counts = noCounts();
  let first: SplitLine | undefined;
  let last: SplitLine | undefined;
  for await (const line of splitLines(createReadStream(path))) {
    if (line.isComplete) {
      count(line.bytes, counts);
      first ??= line;
      last = line;
    }
  }
  if (!first || !last) {
    return { size: 0 };
  }
  try {
    const header = parseHeaderLine(first.bytes);
    const line = last === first ? undefined : parseUnchecked(last.bytes);
    const position = { counts, last: line?.kind === "end" ? undefined : line };
    return { size: last.end, before: { header, position, isComplete: line?.kind === "end" } };
  } catch (error) {
    const reason = error instanceof Problem ? error.rawMessage : (error as Error).message;
    throw new Error(
      `${path} cannot be resumed (${escapeUnprintable(reason)}). Remove it, and export again.`,
    );
  }
}

const prefixes = recordKinds.map((kind) => ({
  name: `${kind}s` as const,
  prefix: Buffer.from(`{"${kind}":`),
}));

/** Counts a line by its first member. */
function count(line: Buffer, counts: Counts): void {
  for (const { name, prefix } of prefixes) {
    if (line.subarray(0, prefix.length).equals(prefix)) {
      counts[name]++;
    }
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
