import { createOutput, type OutputFlags } from "../output.js";
import { howToAdd, type Profile, profileNamed, readProfiles, writeProfiles } from "../profiles.js";
import { type Column, tableText } from "../table.js";

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
