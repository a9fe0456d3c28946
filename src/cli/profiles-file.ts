import { randomUUID } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { readClientEnvironment } from "./environment.js";
import { CommandError, fileReason, latchkey } from "./errors.js";

/** A service and the key to call it with. */
export interface Profile {
  readonly url: string;
  readonly key: string;
  readonly keyHeader?: string | undefined;
}

export interface Profiles {
  /** The profile that commands use by default. */
  readonly current?: string | undefined;
  readonly byName: ReadonlyMap<string, Profile>;
}

/** The file contains keys, so only its owner may read it. */
export function profilesPath(): string {
  return join(readClientEnvironment().configFolder, "profiles.json");
}

/** Throws if other users can read the file. */
export async function readProfiles(path = profilesPath()): Promise<Profiles> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") {
      return undefined;
    }
    throw new CommandError(`Cannot read ${path}: ${fileReason(error)}`);
  });
  if (text === undefined) {
    return { byName: new Map() };
  }
  await refuseIfShared(path);
  try {
    const { current, profiles } = JSON.parse(text);
    return { current, byName: new Map(Object.entries(profiles).map(fromStored)) };
  } catch {
    throw new CommandError(`${path} is not a valid profiles file. Fix or delete it.`);
  }
}

/** Writes a temporary file and renames it, so that a crash loses nothing. */
export async function writeProfiles(
  { current, byName }: Profiles,
  path = profilesPath(),
): Promise<void> {
  const folder = join(path, "..");
  const temporary = `${path}.${randomUUID()}`;
  const profiles = Object.fromEntries([...byName].map(toStored));
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ current, profiles }, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    // Fails too if the folder is not accessible.
    await rm(temporary, { force: true }).catch(() => {});
    throw new CommandError(`Cannot write ${path}: ${fileReason(error as Error)}`);
  }
}

/** Throws if no profile has this name, and lists those that exist. */
export function getProfile({ byName }: Profiles, name: string): Profile {
  const profile = byName.get(name);
  if (!profile) {
    const names = [...byName.keys()];
    const hint = names.length > 0 ? `Profiles: ${names.join(", ")}.` : addProfileHint();
    throw new CommandError(`No profile is named "${name}".`, "notFound", hint);
  }
  return profile;
}

export const addProfileHint = () => `Add one: ${latchkey("profile add NAME --url URL")}`;

async function refuseIfShared(path: string): Promise<void> {
  const { mode } = await stat(path);
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    throw new CommandError(
      `${path} contains keys and is readable by other users (mode ${(mode & 0o777).toString(8)}).`,
      "failed",
      `Run: chmod 600 ${path}`,
    );
  }
}

function fromStored([name, stored]: [string, unknown]): [string, Profile] {
  const { url, key, key_header } = stored as Record<string, unknown>;
  if (typeof url !== "string" || typeof key !== "string") {
    throw new Error("A profile needs a url and a key.");
  }
  return [name, { url, key, keyHeader: key_header as string | undefined }];
}

function toStored([name, { url, key, keyHeader }]: [string, Profile]) {
  return [name, { url, key, key_header: keyHeader }];
}
