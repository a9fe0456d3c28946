import { access, constants, stat, statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { open } from "lmdb";
import type { ManagerExpiration } from "../port/applications.js";
import { managerExpirations } from "./application-attributes.js";
import { checkFile, fileName } from "./folder.js";
import { describeSchema, hasKnownSchema, knownSchema, maxTables, readSchema } from "./tables.js";

/** The state of a data folder, read without changing it. */
export interface FolderFacts {
  readonly path: string;
  readonly isThere: boolean;
  /** Of the folder, or of the parent that it would be created in. */
  readonly isWritable: boolean;
  /** Whether users other than the owner have access. */
  readonly isShared: boolean;
  readonly freeBytes: number;
  readonly store?: FileFacts | undefined;
}

export interface FileFacts {
  readonly bytes: number;
  /** Why the store cannot be opened. */
  readonly error?: string | undefined;
  /** Absent if it cannot be read without changing the folder. */
  readonly schema?: number | undefined;
  readonly knownSchema: number;
  /** When tenants lose their last manager, if that can be read. */
  readonly managerExpirations?: readonly ManagerExpiration[] | undefined;
}

export async function inspectFolder(folder: string): Promise<FolderFacts> {
  const path = resolve(folder);
  const exists = await can(path, constants.F_OK);
  const place = exists ? path : await nearestExisting(dirname(path));
  const { bavail, bsize } = await statfs(place);
  const isWritable = await can(place, constants.W_OK | constants.X_OK);
  return {
    path,
    isThere: exists,
    isWritable,
    isShared: exists && ((await stat(path)).mode & 0o077) !== 0,
    freeBytes: bavail * bsize,
    store: (await can(join(path, fileName), constants.F_OK))
      ? await inspectFile(path, isWritable)
      : undefined,
  };
}

async function inspectFile(folder: string, isWritable: boolean): Promise<FileFacts> {
  const path = join(folder, fileName);
  const { size: bytes } = await stat(path);
  try {
    await checkFile(path);
  } catch (error) {
    return { bytes, knownSchema, error: (error as Error).message };
  }
  // Readers register in the lock file, and would create it if it is missing.
  const canRead = bytes > 0 && isWritable && (await can(join(folder, "lock.mdb"), constants.W_OK));
  return { bytes, knownSchema, ...(canRead && (await readContents(folder))) };
}

async function readContents(path: string): Promise<Omit<FileFacts, "bytes" | "knownSchema">> {
  const root = open({ path, noSubdir: false, readOnly: true, maxDbs: maxTables, maxReaders: 512 });
  try {
    const meta = root.openDB<string, string>({ name: "meta", encoding: "string" });
    if (!meta) {
      return { schema: 0 };
    }
    const schema = readSchema(meta);
    if (!hasKnownSchema(meta)) {
      return { schema, error: `the folder has ${describeSchema(meta)}` };
    }
    const attributes = root.openDB<Buffer, Buffer>({
      name: "application-attributes",
      encoding: "binary",
      keyEncoding: "binary",
    });
    return { schema, managerExpirations: attributes && managerExpirations(attributes, Date.now()) };
  } finally {
    await root.close();
  }
}

async function nearestExisting(path: string): Promise<string> {
  return (await can(path, constants.F_OK)) ? path : nearestExisting(dirname(path));
}

function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
