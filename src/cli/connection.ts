import { randomUUID } from "node:crypto";
import { chmod, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { CommandError, fileReason } from "./errors.js";
import { defaultUrl, header, serviceUrl } from "./options.js";

/** The options of every command that calls the service. */
export interface ConnectionFlags {
  readonly url?: string;
  readonly profile?: string;
  readonly keyFile?: string;
  readonly keyHeader?: string;
  /** Milliseconds. */
  readonly timeout: number;
}

export interface Connection {
  readonly url: string;
  readonly keyHeader: string | undefined;
  /** Absent if it comes from a file or a prompt. */
  readonly key: string | undefined;
  /** Where the key comes from, for example `LATCHKEY_KEY`. Absent if it was typed. */
  readonly keySource: string | undefined;
  /** Whether SVC_API_KEY holds a different key, which is ignored in favor of the profile's. */
  readonly ignoresSvcApiKey?: boolean;
}

/**
 * Options override the environment, and the environment overrides the profile.
 * With --profile the environment is ignored. The key of a profile is sent only
 * to the URL of that profile. It overrides SVC_API_KEY, which is the variable of
 * programs that call the service.
 */
export function resolveConnection(
  flags: Omit<ConnectionFlags, "timeout">,
  environment: Omit<ClientEnvironment, "configFolder" | "colors">,
  profiles: Profiles,
): Connection {
  const usable = flags.profile === undefined ? environment : ({} as Partial<ClientEnvironment>);
  const profileName = flags.profile ?? environment.profile ?? profiles.current;
  const profile = profileFor(flags.profile ?? environment.profile, profiles);
  const fromVariable = <T>(name: string, parse: (text: string) => T, text: string | undefined) =>
    text === undefined ? undefined : parseText(name, parse, text);
  const url = flags.url ?? fromVariable("LATCHKEY_URL", serviceUrl, usable.url) ?? profile?.url;
  const keyHeader =
    flags.keyHeader ??
    fromVariable("LATCHKEY_KEY_HEADER", header, usable.keyHeader) ??
    profile?.keyHeader;
  const service = { url: url ?? defaultUrl, keyHeader };
  if (flags.keyFile !== undefined) {
    return { ...service, key: undefined, keySource: `--key-file ${flags.keyFile}` };
  }
  if (usable.key !== undefined) {
    return { ...service, key: usable.key, keySource: "LATCHKEY_KEY" };
  }
  if (profile && url === profile.url) {
    const { key } = profile;
    const ignoresSvcApiKey = (usable.svcApiKey ?? key) !== key;
    return { ...service, key, keySource: `the profile "${profileName}"`, ignoresSvcApiKey };
  }
  const { svcApiKey: key } = usable;
  return { ...service, key, keySource: key === undefined ? undefined : "SVC_API_KEY" };
}

function profileFor(name: string | undefined, profiles: Profiles): Profile | undefined {
  if (name !== undefined) {
    return getProfile(profiles, name);
  }
  return profiles.current === undefined ? undefined : profiles.byName.get(profiles.current);
}

/** Parses a text that is not an option. Commander reports errors of options itself. */
export function parseText<T>(name: string, parse: (text: string) => T, text: string): T {
  try {
    return parse(text);
  } catch (error) {
    throw new CommandError(`${name}: ${(error as Error).message}`, "usage");
  }
}

export function isLoopback(hostname: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[?::1\]?)$/.test(hostname);
}

/** The environment variables of the commands that call the service. No other module reads them. */
export interface ClientEnvironment {
  readonly url: string | undefined;
  readonly key: string | undefined;
  /** The key in the variable that the examples of the documentation use. */
  readonly svcApiKey: string | undefined;
  readonly keyHeader: string | undefined;
  readonly profile: string | undefined;
  /** The folder of this user's profiles. */
  readonly configFolder: string;
  /** Whether to use colors; `undefined` to use them on a terminal only. */
  readonly colors: boolean | undefined;
}

export function readClientEnvironment(
  environment: Readonly<NodeJS.Dict<string>> = process.env,
): ClientEnvironment {
  const read = (name: string) => environment[name] || undefined;
  return {
    url: read("LATCHKEY_URL"),
    key: read("LATCHKEY_KEY"),
    svcApiKey: read("SVC_API_KEY"),
    keyHeader: read("LATCHKEY_KEY_HEADER"),
    profile: read("LATCHKEY_PROFILE"),
    configFolder: join(read("XDG_CONFIG_HOME") ?? join(homedir(), ".config"), "latchkey"),
    colors: colorPreference(environment),
  };
}

function colorPreference({ FORCE_COLOR, NO_COLOR, TERM }: Readonly<NodeJS.Dict<string>>) {
  if (FORCE_COLOR !== undefined) {
    return FORCE_COLOR !== "0" && FORCE_COLOR !== "false";
  }
  return NO_COLOR || TERM === "dumb" ? false : undefined;
}

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
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const temporary = `${path}.${randomUUID()}`;
  const profiles = Object.fromEntries([...byName].map(toStored));
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ current, profiles }, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new CommandError(`Cannot write ${path}: ${fileReason(error as Error)}`);
  }
}

/** Throws if no profile has this name, and lists those that exist. */
export function getProfile({ byName }: Profiles, name: string): Profile {
  const profile = byName.get(name);
  if (!profile) {
    const names = [...byName.keys()];
    const hint = names.length > 0 ? `Profiles: ${names.join(", ")}.` : addProfileHint;
    throw new CommandError(`No profile is named "${name}".`, "notFound", hint);
  }
  return profile;
}

export const addProfileHint = "Add one: latchkey profile add NAME --url URL";

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
