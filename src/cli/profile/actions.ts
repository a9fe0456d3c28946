import { selfText } from "../access/actions.js";
import { explainCall } from "../call-errors.js";
import { createServiceClient } from "../client.js";
import { defaultUrl, isLoopback } from "../connection.js";
import { CommandFailure } from "../errors.js";
import { createOutput, type OutputFlags } from "../output.js";
import { readSecret } from "../prompt.js";
import { type Column, tableText } from "../table.js";
import {
  howToAdd,
  type Profile,
  profileNamed,
  profilesPath,
  readProfiles,
  writeProfiles,
} from "./profiles.js";

interface Flags extends OutputFlags {
  readonly url?: string;
  readonly keyFile?: string;
  readonly keyHeader?: string;
  readonly timeout: number;
  readonly replace?: boolean;
  readonly check: boolean;
}

/** Keeps a service and a key under a name, once the key has been seen to work. */
export async function addProfile(name: string, flags: Flags): Promise<void> {
  const { url = defaultUrl, keyHeader } = flags;
  const before = await readProfiles();
  if (before.byName.has(name) && !flags.replace) {
    throw new CommandFailure(
      `There is a profile "${name}" already.`,
      "conflict",
      "Say --replace to replace it.",
    );
  }
  const key = await readSecret({ noun: `the key for ${url}`, file: flags.keyFile });
  const profile = { url, key, keyHeader };
  const self = flags.check ? await askWhose(profile, flags) : undefined;
  const isFirst = before.byName.size === 0;
  const current = isFirst ? name : before.current;
  await writeProfiles({ current, byName: new Map(before.byName).set(name, profile) });

  const output = createOutput(flags);
  const facts = { name, url, current: current === name };
  output.showValue(facts, (look) => (self ? selfText(self, url, look) : ""));
  output.note(`The profile "${name}" is kept in ${profilesPath()}.`);
  output.note(
    current === name
      ? undefined
      : `Use it by --profile ${name}, or always: latchkey profile use ${name}`,
  );
  output.note(
    isOpen(url) ? "The key goes over the network unencrypted: https:// would hide it." : undefined,
  );
}

async function askWhose(profile: Profile, { timeout: timeoutMs }: Flags) {
  const client = createServiceClient(profile);
  try {
    return await client.access.whoAmI({}, { timeoutMs });
  } catch (error) {
    throw explainCall(error, profile.url);
  } finally {
    client.close();
  }
}

/** Whether others can read what is sent there. */
function isOpen(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}

interface Listed extends Profile {
  readonly name: string;
  readonly isCurrent: boolean;
}

const columns: readonly Column<Listed>[] = [
  {
    title: "",
    text: ({ isCurrent }) => (isCurrent ? "*" : ""),
    paint: (text, _, { good }) => good(text),
  },
  { title: "NAME", text: ({ name }) => name },
  { title: "URL", text: ({ url }) => url },
  { title: "KEY", text: ({ key }) => shownKey(key) },
  { title: "HEADER", text: ({ keyHeader = "" }) => keyHeader, isExtra: true },
];

/** So much of a key that it is known again, and nothing of its secret. */
function shownKey(key: string): string {
  const [start] = /^lk_[a-z]{3}_.{4}/.exec(key) ?? [""];
  return `${start}…`;
}

export async function listProfiles(flags: OutputFlags): Promise<void> {
  const { current, byName } = await readProfiles();
  const output = createOutput(flags);
  const listed = [...byName].map(([name, profile]) => ({
    name,
    ...profile,
    isCurrent: name === current,
  }));
  const data = listed.map(({ name, url, keyHeader, isCurrent }) => ({
    name,
    url,
    ...(keyHeader && { key_header: keyHeader }),
    current: isCurrent,
  }));
  output.showValue({ data }, (look) => (listed.length > 0 ? tableText(columns, listed, look) : ""));
  output.note(listed.length > 0 ? undefined : `There are no profiles yet. ${howToAdd}`);
}

export async function useProfile(name: string, flags: OutputFlags): Promise<void> {
  const profiles = await readProfiles();
  const { url } = profileNamed(profiles, name);
  await writeProfiles({ ...profiles, current: name });
  createOutput(flags).showValue({ name, url }, () => `Commands now call ${url}.\n`);
}

export async function removeProfile(name: string, flags: OutputFlags): Promise<void> {
  const profiles = await readProfiles();
  profileNamed(profiles, name);
  const byName = new Map(profiles.byName);
  byName.delete(name);
  const current = profiles.current === name ? undefined : profiles.current;
  await writeProfiles({ current, byName });
  createOutput(flags).showValue({ name }, () => `The profile "${name}" is removed.\n`);
}
