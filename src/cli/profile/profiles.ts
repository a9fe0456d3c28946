import { randomUUID } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { readClientEnvironment } from "../environment.js";
import { CommandFailure } from "../errors.js";

/** A service and the key to call it with. */
export interface Profile {
  readonly url: string;
  readonly key: string;
  readonly keyHeader?: string | undefined;
}

export interface Profiles {
  /** The one that is used where nothing else is said. */
  readonly current?: string | undefined;
  readonly byName: ReadonlyMap<string, Profile>;
}

/** The file that profiles are kept in, with their keys: for its owner only. */
export function profilesPath(): string {
  return join(readClientEnvironment().configFolder, "profiles.json");
}

/** Reads the profiles, or throws where others could have read them. */
export async function readProfiles(path = profilesPath()): Promise<Profiles> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") {
      return undefined;
    }
    throw new CommandFailure(`${path} cannot be read: ${error.message}`);
  });
  if (text === undefined) {
    return { byName: new Map() };
  }
  await refuseIfShared(path);
  try {
    const { current, profiles } = JSON.parse(text);
    return { current, byName: new Map(Object.entries(profiles).map(fromStored)) };
  } catch {
    throw new CommandFailure(`${path} is not a file of profiles: mend it, or remove it.`);
  }
}

/** Writes them aside and moves them into place whole, so that none are lost halfway. */
export async function writeProfiles(
  { current, byName }: Profiles,
  path = profilesPath(),
): Promise<void> {
  const folder = join(path, "..");
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const aside = `${path}.${randomUUID()}`;
  const profiles = Object.fromEntries([...byName].map(toStored));
  try {
    const file = await open(aside, "wx", 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ current, profiles }, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(aside, path);
  } catch (error) {
    await rm(aside, { force: true });
    throw new CommandFailure(`${path} cannot be written: ${(error as Error).message}`);
  }
}

/** The profile of this name, or throws what there is. */
export function profileNamed({ byName }: Profiles, name: string): Profile {
  const profile = byName.get(name);
  if (!profile) {
    const names = [...byName.keys()];
    const hint = names.length > 0 ? `There is: ${names.join(", ")}.` : howToAdd;
    throw new CommandFailure(`There is no profile "${name}".`, "notFound", hint);
  }
  return profile;
}

export const howToAdd = "Make one: latchkey profile add NAME --url URL";

async function refuseIfShared(path: string): Promise<void> {
  const { mode } = await stat(path);
  if (process.platform !== "win32" && (mode & 0o077) !== 0) {
    throw new CommandFailure(
      `${path} has keys in it and can be read by others (mode ${(mode & 0o777).toString(8)}).`,
      "failed",
      `Close it: chmod 600 ${path}`,
    );
  }
}

function fromStored([name, stored]: [string, unknown]): [string, Profile] {
  const { url, key, key_header } = stored as Record<string, unknown>;
  if (typeof url !== "string" || typeof key !== "string") {
    throw new Error("it has no url or no key");
  }
  return [name, { url, key, keyHeader: key_header as string | undefined }];
}

function toStored([name, { url, key, keyHeader }]: [string, Profile]) {
  return [name, { url, key, key_header: keyHeader }];
}
