import { Argument, type Command } from "commander";
import { isLoopback } from "../lib/networks.js";
import { formatIdentity } from "./access.js";
import { readKey, verifyKey } from "./client.js";
import { CommandError, latchkey } from "./errors.js";
import { parseProfileName } from "./option-values.js";
import {
  addExample,
  defaultUrl,
  type NewConnectionFlags,
  profileArgument,
  withJson,
  withNewConnection,
  yesOption,
} from "./options.js";
import { createOutput, type OutputFlags, shortenKey } from "./output.js";
import {
  addProfileHint,
  getProfile,
  type Profile,
  type Profiles,
  profilesPath,
  readProfiles,
  writeProfiles,
} from "./profiles-file.js";
import { type ConfirmFlags, confirm } from "./prompt.js";
import { type Column, formatTable } from "./table.js";

export function addProfileCommands(program: Command): void {
  const profile = program
    .command("profile")
    .helpCommand(false)
    .description("manage saved service URLs and keys");

  const add = profile
    .command("add")
    .summary("save a service URL and a key")
    .description("save a service URL and a key; the key comes from a prompt or stdin")
    .addArgument(new Argument("<name>", "name of the profile").argParser(parseProfileName))
    .option("--replace", "overwrite an existing profile")
    .option("--no-check", "do not verify the key")
    .action(addProfile);
  addExample(
    withNewConnection(add),
    "latchkey profile add staging --url https://latchkey.staging.example.com",
  );

  const list = profile
    .command("ls")
    .alias("list")
    .description("list profiles; * marks the current one")
    .action(listProfiles);
  addExample(withJson(list), "latchkey profile ls");

  const use = profile
    .command("use")
    .description("make a profile the current one")
    .addArgument(profileArgument())
    .action(useProfile);
  addExample(withJson(use), "latchkey profile use staging");

  const remove = profile
    .command("rm")
    .alias("delete")
    .description("delete a profile and its key")
    .addArgument(profileArgument())
    .addOption(yesOption())
    .action(removeProfile);
  addExample(withJson(remove), "latchkey profile rm staging");
}

interface AddFlags extends OutputFlags, NewConnectionFlags {
  readonly replace?: boolean;
  readonly check: boolean;
}

/** Saves a service URL and a key after the service accepted the key. */
async function addProfile(name: string, flags: AddFlags): Promise<void> {
  const { url = defaultUrl, keyHeader } = flags;
  const before = await readProfiles();
  if (before.byName.has(name) && !flags.replace) {
    throw new CommandError(
      `A profile named "${name}" already exists.`,
      "conflict",
      "Pass --replace to overwrite it.",
    );
  }
  const service = { url, keyHeader };
  const key = await readKey(service, flags);
  const profile = { ...service, key };
  const identity = flags.check ? await verifyKey(profile, flags.timeout) : undefined;
  const isCurrent = await saveProfile(name, profile, before);
  const output = createOutput(flags);
  const result = { name, url, current: isCurrent };
  output.showValue(result, (display) => (identity ? formatIdentity(identity, url, display) : ""));
  output.note(`Saved the profile "${name}" in ${profilesPath()}.`);
  output.note(isCurrent ? undefined : profileHint(name));
  output.note(isUnencrypted(url) ? "The key is sent unencrypted. Use an https:// URL." : undefined);
}

/** How to use a profile that is not the current one. */
export function profileHint(name: string): string {
  return `Use it with --profile ${name}, or by default: ${latchkey(`profile use ${name}`)}`;
}

/** Saves a profile, and returns whether it is the current one. The first profile becomes the current one. */
export async function saveProfile(
  name: string,
  profile: Profile,
  { byName, current: before }: Profiles,
): Promise<boolean> {
  const current = byName.size === 0 ? name : before;
  await writeProfiles({ current, byName: new Map(byName).set(name, profile) });
  return current === name;
}

function isUnencrypted(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" && !isLoopback(hostname);
}

interface ListedProfile extends Profile {
  readonly name: string;
  readonly isCurrent: boolean;
}

const columns: readonly Column<ListedProfile>[] = [
  {
    title: "",
    text: ({ isCurrent }) => (isCurrent ? "*" : ""),
    paint: (text, _, { good }) => good(text),
  },
  { title: "NAME", text: ({ name }) => name },
  { title: "URL", text: ({ url }) => url, shrinkTo: 20 },
  { title: "KEY", text: ({ key }) => shortenKey(key) },
  { title: "HEADER", text: ({ keyHeader = "" }) => keyHeader, optional: true },
];

async function listProfiles(flags: OutputFlags): Promise<void> {
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
  output.showValue({ data }, (display) =>
    listed.length > 0 ? formatTable(columns, listed, display) : "",
  );
  output.note(listed.length > 0 ? undefined : `No profiles. ${addProfileHint()}`);
}

async function useProfile(name: string, flags: OutputFlags): Promise<void> {
  const profiles = await readProfiles();
  const { url } = getProfile(profiles, name);
  await writeProfiles({ ...profiles, current: name });
  createOutput(flags).showValue(
    { name, url },
    () => `The current profile is "${name}" (${url}).\n`,
  );
}

async function removeProfile(name: string, flags: OutputFlags & ConfirmFlags): Promise<void> {
  const profiles = await readProfiles();
  const { url } = getProfile(profiles, name);
  await confirm(
    `The profile "${name}" and its saved key for ${url} will be deleted. The key itself stays valid.`,
    flags,
  );
  const byName = new Map(profiles.byName);
  byName.delete(name);
  const current = profiles.current === name ? undefined : profiles.current;
  await writeProfiles({ current, byName });
  const output = createOutput(flags);
  output.showValue({ name }, () => `Deleted the profile "${name}".\n`);
  output.note(
    current === undefined && byName.size > 0
      ? `No profile is the current one. Choose one: ${latchkey("profile use NAME")}`
      : undefined,
  );
}
