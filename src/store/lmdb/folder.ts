import { access, mkdir, open, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The data file of LMDB. */
export const fileName = "data.mdb";

/**
 * Creates a folder if needed, and checks that LMDB can open it. LMDB would
 * crash the process on a full disk and on a file of another format.
 */
export async function prepareFolder(path: string): Promise<void> {
  await makeFolder(path);
  await checkWritable(path);
  await checkFile(join(path, fileName));
}

/** Whether a folder has a data file. */
export async function storeExists(path: string): Promise<boolean> {
  return exists(join(path, fileName));
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
  if (await exists(path)) {
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

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Writes enough to prove that the lock file and the first pages fit. */
async function checkWritable(path: string): Promise<void> {
  const file = join(path, `.try-${process.pid}-${process.hrtime.bigint()}`);
  try {
    await writeFile(file, Buffer.alloc(128 * 1024));
  } finally {
    await rm(file, { force: true });
  }
}

/** Throws if a file exists that LMDB cannot open. */
export async function checkFile(path: string): Promise<void> {
  if (!(await exists(path))) {
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
