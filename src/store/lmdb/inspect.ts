import { access, constants, stat, statfs } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { open } from "lmdb";
import type { ManagerEnd } from "../port/applications.js";
import { managerEnds } from "./application-facts.js";
import { checkFile, fileName } from "./folder.js";
import { describeSchema, hasKnownSchema, knownSchema, maxTables, readSchema } from "./tables.js";

/** What can be seen of the folder of a store without changing anything. */
export interface FolderFacts {
  readonly path: string;
  readonly isThere: boolean;
  /** Of the folder, or of the one that it would be made in. */
  readonly isWritable: boolean;
  /** Whether others than the owner may read it. */
  readonly isShared: boolean;
  readonly freeBytes: number;
  readonly store?: FileFacts | undefined;
}

export interface FileFacts {
  readonly bytes: number;
  /** Why it cannot be opened. */
  readonly fault?: string | undefined;
  /** The version of its layout, where it can be read without leaving a trace. */
  readonly schema?: number | undefined;
  readonly knownSchema: number;
  /** When tenants lose their last manager, where that can be read. */
  readonly managerEnds?: readonly ManagerEnd[] | undefined;
}

export async function inspectFolder(folder: string): Promise<FolderFacts> {
  const path = resolve(folder);
  const isThere = await can(path, constants.F_OK);
  const place = isThere ? path : await firstThatIs(dirname(path));
  const { bavail, bsize } = await statfs(place);
  const isWritable = await can(place, constants.W_OK | constants.X_OK);
  return {
    path,
    isThere,
    isWritable,
    isShared: isThere && ((await stat(path)).mode & 0o077) !== 0,
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
    return { bytes, knownSchema, fault: (error as Error).message };
  }
  // Who reads is noted in the lock file, which would be made where it is missing.
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
      return { schema, fault: `the folder has ${describeSchema(meta)}` };
    }
    const attributes = root.openDB<Buffer, Buffer>({
      name: "application-attributes",
      encoding: "binary",
      keyEncoding: "binary",
    });
    return { schema, managerEnds: attributes && managerEnds(attributes, Date.now()) };
  } finally {
    await root.close();
  }
}

async function firstThatIs(path: string): Promise<string> {
  return (await can(path, constants.F_OK)) ? path : firstThatIs(dirname(path));
}

function can(path: string, mode: number): Promise<boolean> {
  return access(path, mode).then(
    () => true,
    () => false,
  );
}
