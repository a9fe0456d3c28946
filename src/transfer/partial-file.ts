import { createReadStream } from "node:fs";
import { access, type FileHandle, open, rename } from "node:fs/promises";
import { Problem } from "../errors.js";
import { visible } from "../lib/printable.js";
import type { ExportPlace } from "./export.js";
import { type Counts, type Header, noCounts, recordKinds } from "./format.js";
import { readHeader, readUnchecked, type SplitLine, splitLines } from "./lines.js";

/** Where an export is written to. */
export interface ExportTarget {
  /** What was written before; absent where nothing was. */
  readonly before?: PartialExport | undefined;
  write(text: string): Promise<void>;
  /** Makes known that it is whole. */
  finish(): Promise<void>;
  /** Leaves it as it is. */
  close(): Promise<void>;
}

export interface PartialExport {
  readonly header: Header;
  readonly place: ExportPlace;
  /** Whether its last line is there, so that only its name is missing. */
  readonly isWhole: boolean;
}

/**
 * Begins a file, or goes on with one that was begun. It has its name when it
 * is whole, and another before that. One that is there is never overwritten.
 */
export async function openPartFile(path: string, resume: boolean): Promise<ExportTarget> {
  const partPath = `${path}.part`;
  if (await isThere(path)) {
    throw new Error(`${path} is there already: remove it, or choose another name.`);
  }
  const isBegun = await isThere(partPath);
  if (isBegun && !resume) {
    throw new Error(
      `${partPath} is there, of an export that did not end: go on with it by --resume, or remove it.`,
    );
  }
  const scan = isBegun ? await scanPart(partPath) : undefined;
  // Hashes of keys are for nobody else to read.
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

/** What is whole of a file that was begun, and how many bytes that is. */
interface Scan {
  readonly size: number;
  readonly before?: PartialExport | undefined;
}

/** Goes over the lines, of which only the first and the last are read. */
async function scanPart(path: string): Promise<Scan> {
  const counts = noCounts();
  let first: SplitLine | undefined;
  let last: SplitLine | undefined;
  for await (const line of splitLines(createReadStream(path))) {
    if (line.isWhole) {
      count(line.bytes, counts);
      first ??= line;
      last = line;
    }
  }
  if (!first || !last) {
    return { size: 0 };
  }
  try {
    const header = readHeader(first.bytes);
    const line = last === first ? undefined : readUnchecked(last.bytes);
    const place = { counts, last: line?.kind === "end" ? undefined : line };
    return { size: last.end, before: { header, place, isWhole: line?.kind === "end" } };
  } catch (error) {
    const what = error instanceof Problem ? error.rawMessage : (error as Error).message;
    throw new Error(
      `${path} cannot be gone on with (${visible(what)}): remove it, and export anew.`,
    );
  }
}

const openings = recordKinds.map((kind) => ({
  name: `${kind}s` as const,
  opening: Buffer.from(`{"${kind}":`),
}));

/** Counts a line by how it begins. */
function count(line: Buffer, counts: Counts): void {
  for (const { name, opening } of openings) {
    if (line.subarray(0, opening.length).equals(opening)) {
      counts[name]++;
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
