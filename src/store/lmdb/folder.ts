import { access, constants, mkdir, open, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { open as openLmdb } from "lmdb";
import type { ManagerExpiration } from "../port/applications.js";
import { managerExpirations } from "./indexes.js";
import {
  describeSchema,
  hasSupportedSchema,
  maxReaders,
  maxTables,
  readSchema,
  supportedSchema,
} from "./tables.js";

/** The data file of LMDB. */
const fileName = "data.mdb";

/**
 * Creates a folder if needed, and checks that LMDB can open it. LMDB would
 * crash the process on a full disk and on a file of another format.
 */
export async function prepareFolder(path: string): Promise<void> {
  await makeFolder(path);
  await assertWritable(path);
  await assertOpenable(join(path, fileName));
}

/** Whether a folder has a data file. */
export async function storeExists(path: string): Promise<boolean> {
  return hasAccess(join(path, fileName));
}

/** Syncs the directory entries, so that new files survive a power failure. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") {
    return;
  }
  for (const folder of [path, dirname(path)]) {
    const handle = await open(folder);
    await handle.sync().finally(() => handle.close());
  }
}

// `mkdir` with `recursive` hangs on file systems such as /proc.
async function makeFolder(path: string): Promise<void> {
  if (await hasAccess(path)) {
    return;
  }
  if (dirname(path) !== path) {
    await makeFolder(dirname(path));
  }
  await mkdir(path, { mode: 0o700 }).catch((error) => {
    if (error.code !== "EEXIST") {
      throw error;
    }
  });
}

/** Writes enough to prove that the lock file and the first pages fit. */
async function assertWritable(path: string): Promise<void> {
  const file = join(path, `.try-${process.pid}-${process.hrtime.bigint()}`);
  try {
    await writeFile(file, Buffer.alloc(128 * 1024));
  } finally {
    await rm(file, { force: true });
  }
}

/** Throws if a file exists that LMDB cannot open. */
async function assertOpenable(path: string): Promise<void> {
  if (!(await hasAccess(path))) {
    return;
  }
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size === 0) {
      return;
    }
    const header = Buffer.alloc(32);
    await file.read(header, 0, header.length, 0);
    const twoPages = 8192;
    if (size < twoPages || header.readUInt32LE(24) !== 0xbeefc0de) {
      throw new Error("its data.mdb is not an LMDB database");
    }
  } finally {
    await file.close();
  }
}

/** The state of a data folder, read without changing it. */
export interface FolderStatus {
  readonly path: string;
  readonly exists: boolean;
  /** Of the folder, or of the parent that it would be created in. */
  readonly isWritable: boolean;
  /** Whether users other than the owner have access. */
  readonly isShared: boolean;
  readonly freeBytes: number;
  readonly store?: DataFileStatus | undefined;
}

export interface DataFileStatus {
  readonly bytes: number;
  /** Why the store cannot be opened. */
  readonly error?: string | undefined;
  /** Absent if it cannot be read without changing the folder. */
  readonly schema?: number | undefined;
  readonly supportedSchema: number;
  /** When tenants lose their last manager, if that can be read. */
  readonly managerExpirations?: readonly ManagerExpiration[] | undefined;
}

export async function inspectFolder(folder: string): Promise<FolderStatus> {
  const path = resolve(folder);
  const exists = await hasAccess(path);
  const target = exists ? path : await nearestExisting(dirname(path));
  const { bavail, bsize } = await statfs(target);
  const isWritable = await hasAccess(target, constants.W_OK | constants.X_OK);
  return {
    path,
    exists,
    isWritable,
    isShared: exists && ((await stat(path)).mode & 0o077) !== 0,
    freeBytes: bavail * bsize,
    store: (await hasAccess(join(path, fileName)))
      ? await inspectFile(path, isWritable)
      : undefined,
  };
}

async function inspectFile(folder: string, isWritable: boolean): Promise<DataFileStatus> {
  const path = join(folder, fileName);
  const { size: bytes } = await stat(path);
  try {
    await assertOpenable(path);
  } catch (error) {
    return { bytes, supportedSchema, error: (error as Error).message };
  }
  // Readers register in the lock file, and would create it if it is missing.
  const canRead =
    bytes > 0 && isWritable && (await hasAccess(join(folder, "lock.mdb"), constants.W_OK));
  return { bytes, supportedSchema, ...(canRead && (await readContents(folder))) };
}

async function readContents(
  path: string,
): Promise<Omit<DataFileStatus, "bytes" | "supportedSchema">> {
  const root = openLmdb({
    path,
    noSubdir: false,
    readOnly: true,
    maxDbs: maxTables,
    maxReaders,
  });
  try {
    const meta = root.openDB<string, string>({ name: "meta", encoding: "string" });
    if (!meta) {
      return { schema: 0 };
    }
    const schema = readSchema(meta);
    if (!hasSupportedSchema(meta)) {
      return { schema, error: `the folder has ${describeSchema(meta)}` };
    }
    const index = root.openDB<Buffer, Buffer>({
      name: "index",
      encoding: "binary",
      keyEncoding: "binary",
    });
    return { schema, managerExpirations: index && managerExpirations(index, Date.now()) };
  } finally {
    await root.close();
  }
}

async function nearestExisting(path: string): Promise<string> {
  return (await hasAccess(path)) ? path : nearestExisting(dirname(path));
}

/** Whether this process has access to a path, by default whether it exists. */
function hasAccess(path: string, mode = constants.F_OK): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
