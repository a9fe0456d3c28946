import { access, mkdir, open, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** The file that LMDB keeps all data in. */
export const fileName = "data.mdb";

/**
 * Makes a folder ready to be opened by LMDB, or throws. LMDB itself brings the
 * process down, with no error to catch, on a full disk and on a file that is
 * none of its own, so both are looked for here.
 */
export async function prepareFolder(path: string): Promise<void> {
  await makeFolder(path);
  await tryWriting(path);
  await checkFile(join(path, fileName));
}

/** Whether a folder has been made ready and written to. */
export async function holdsStore(path: string): Promise<boolean> {
  return exists(join(path, fileName));
}

/** Makes the names of the files in a folder, and of the folder, as durable as what is in them. */
export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") {
    return;
  }
  for (const folder of [path, dirname(path)]) {
    const handle = await open(folder);
    await handle.sync().finally(() => handle.close());
  }
}

// The `recursive` of `mkdir` never returns where a file system such as /proc refuses.
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

/** The size leaves room for the lock file and the first pages. */
async function tryWriting(path: string): Promise<void> {
  const file = join(path, `.try-${process.pid}-${process.hrtime.bigint()}`);
  try {
    await writeFile(file, Buffer.alloc(128 * 1024));
  } finally {
    await rm(file, { force: true });
  }
}

/** Throws where a file is there that LMDB cannot open. */
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
      throw new Error("its data.mdb is not a database of this kind");
    }
  } finally {
    await file.close();
  }
}
