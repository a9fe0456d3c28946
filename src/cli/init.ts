import { existsSync, lstatSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import type { Application } from "../../gen/latchkey/v1/application_service_pb.js";
import { quoteIfNeeded } from "../contract/samples/curl.js";
import { createGuardSamples, type SampleLanguage } from "../contract/samples/samples.js";
import { escapeUnprintable } from "../lib/terminal.js";
import { listNamed } from "./apps/find-application.js";
import { callService, readKey, verifyKey } from "./client.js";
import { CommandError, fileReason, latchkey } from "./errors.js";
import { parseServiceUrl, parseText } from "./option-values.js";
import { defaultUrl, type NewConnectionFlags } from "./options.js";
import { createOutput, type Output, type OutputFlags } from "./output.js";
import { profileHint, saveProfile } from "./profile.js";
import { type Profile, type Profiles, readProfiles } from "./profiles-file.js";
import { isInteractive, promptWithDefault, promptYesNo } from "./prompt.js";
import { requireReader } from "./stdio.js";

interface InitFlags extends OutputFlags, NewConnectionFlags {
  /** The name of the profile. */
  readonly profile?: string;
  /** The name of the application. */
  readonly name?: string;
  readonly write?: boolean;
}

/** With both, the example can check its own key, which is then allowed. */
const permissions = ["access:check", "token:read"] as const;

/** Connects to a service, creates an application, and shows how to check a key in this folder's language. */
export async function initCommand(flags: InitFlags): Promise<void> {
  const output = createOutput(flags);
  const example = exampleFor(process.cwd());
  const { file } = example;
  const fileExists = isPathTaken(file);
  if (flags.write && fileExists) {
    throw new CommandError(`${file} already exists.`, "conflict", "Delete it, or omit --write.");
  }
  const profiles = await readProfiles();
  const profileName = flags.profile ?? profiles.current ?? "local";
  const { profile, isNew } = await connect(profileName, profiles, flags);
  // If the name is taken, a new profile is not saved.
  const option = isNew ? `--url ${quoteIfNeeded(profile.url)}` : `--profile ${profileName}`;
  const connectOption = profileName === profiles.current ? "" : ` ${option}`;
  const name = await chooseName(profile, output, { ...flags, connectOption });
  const writes = flags.write || (!fileExists && (await confirmWrite(file, flags)));
  const application = await createApplication(name, profile, flags);
  const code = codeFor(example.language, profile);
  const result = { profileName, url: profile.url, application, example, code };
  showResult(output, result, !writes);
  // Last, so that a failure does not hide the new key, and a useless profile is not saved.
  const isCurrent = isNew
    ? await saveProfile(profileName, profile, profiles)
    : profileName === profiles.current;
  output.note(`${isNew ? "Saved" : "Used"} the profile "${profileName}" for ${profile.url}.`);
  output.note(isCurrent ? undefined : profileHint(profileName));
  if (writes) {
    await writeExample(file, code);
  }
  const saved = fileExists
    ? `${file} already exists and was not changed.`
    : `${writes ? "Wrote" : "Save the program as"} ${file}.`;
  output.note(`${saved} Let it check its own key, which you paste first:`);
  for (const command of [enterKeyCommand, ...example.commands]) {
    output.note(`  ${command}`);
  }
}

/** Returns an existing profile or a new one. The service accepts its key. */
async function connect(
  name: string,
  profiles: Profiles,
  flags: InitFlags,
): Promise<{ readonly profile: Profile; readonly isNew: boolean }> {
  const existing = profiles.byName.get(name);
  if (existing && (flags.url ?? flags.keyFile ?? flags.keyHeader) !== undefined) {
    throw new CommandError(
      `A profile named "${name}" already exists.`,
      "conflict",
      "Pass another name with --profile, or use it: pass no --url, --key-file and --key-header.",
    );
  }
  const profile = existing ?? (await promptForProfile(flags));
  await verifyKey(profile, flags.timeout);
  return { profile, isNew: !existing };
}

async function promptForProfile(flags: InitFlags): Promise<Profile> {
  const url =
    flags.url ??
    parseText("URL", parseServiceUrl, await promptWithDefault("URL of the service", defaultUrl));
  const service = { url, keyHeader: flags.keyHeader };
  return { ...service, key: await readKey(service, flags) };
}

function folderName(): string {
  return basename(process.cwd()) || "My service";
}

/** A second application with the same name would need its id in every command. */
async function chooseName(
  profile: Profile,
  output: Output,
  flags: InitFlags & { readonly connectOption: string },
): Promise<string> {
  for (;;) {
    const name = flags.name ?? (await promptWithDefault("Name of the application", folderName()));
    if (!(await isTaken(name, profile, flags))) {
      return name;
    }
    const taken = `An application named "${name}" already exists.`;
    if (flags.name !== undefined || !isInteractive()) {
      throw new CommandError(
        taken,
        "conflict",
        "Pass another name with --name. If its key is lost, replace it: " +
          latchkey(`apps rotate ${quoteIfNeeded(name)}${flags.connectOption}`),
      );
    }
    output.warn(`${taken} Enter another name.`);
  }
}

function isTaken(name: string, profile: Profile, flags: InitFlags): Promise<boolean> {
  return callService(profile, flags, async (context) => {
    // A key may create applications, but not read them.
    const found = await listNamed(context, name).catch(() => []);
    return found.length > 0;
  });
}

function createApplication(name: string, profile: Profile, flags: InitFlags): Promise<Application> {
  const request = { name, type: "private", permissions: [...permissions] };
  // Errors about the name refer to --name, also if it was typed.
  const given = { ...flags, name };
  return callService(profile, given, ({ client, call }) =>
    client.applications.createApplication(request, call),
  );
}

/** Keeps the key out of the history of the shell. */
const enterKeyCommand = "read -rs SVC_API_KEY && export SVC_API_KEY";

interface Example {
  readonly language: SampleLanguage;
  readonly title: string;
  readonly file: string;
  /** The commands that run it. */
  readonly commands: readonly string[];
}

/** The example for the language of a folder. */
export function exampleFor(folder: string): Example {
  const has = (...names: string[]) => names.some((name) => existsSync(join(folder, name)));
  const run = (command: string) => `CALLER_KEY=$SVC_API_KEY ${command}`;
  if (has("package.json")) {
    const isTypeScript = has("tsconfig.json");
    // A module in every project: the program has a top-level await.
    const file = isTypeScript ? "latchkey-guard.mts" : "latchkey-guard.mjs";
    return {
      language: "typescript",
      title: isTypeScript ? "TypeScript" : "JavaScript",
      file,
      commands: [
        `npm install ${packageSource()}${isTypeScript ? " tsx" : ""}`,
        run(`${isTypeScript ? "npx tsx" : "node"} ${file}`),
      ],
    };
  }
  if (has("go.mod")) {
    const commands = [run("go run ./latchkey-guard")];
    return { language: "go", title: "Go", file: "latchkey-guard/main.go", commands };
  }
  if (has("pyproject.toml", "requirements.txt")) {
    const commands = [run("python3 latchkey_guard.py")];
    return { language: "python", title: "Python", file: "latchkey_guard.py", commands };
  }
  return {
    language: "curl",
    title: "a shell",
    file: "latchkey-guard.sh",
    commands: [run("sh latchkey-guard.sh")],
  };
}

/** A checkout installs itself: it may be newer than the package in the registry. */
function packageSource(): string {
  const folder = dirname(createRequire(import.meta.url).resolve("latchkey/package.json"));
  return folder.split(/[\\/]/).includes("node_modules") ? "latchkey" : quoteIfNeeded(folder);
}

function codeFor(language: SampleLanguage, { url, keyHeader }: Profile): string {
  const samples = createGuardSamples({ origin: url, keyHeader, permission: permissions[1] });
  const code = samples.find((sample) => sample.language === language)?.code;
  return `${code}\n`;
}

interface Result {
  readonly profileName: string;
  readonly url: string;
  readonly application: Application;
  readonly example: Example;
  readonly code: string;
}

/** Prints the key last, so that a long program does not scroll it away. */
function showResult(
  output: Output,
  { profileName, url, application, example, code }: Result,
  showsCode: boolean,
): void {
  const { id, name, key = "" } = application;
  const { language, title, file } = example;
  const value = {
    profile: profileName,
    url,
    application_id: id,
    key,
    example: { language, file, code },
  };
  requireReader(`The key of "${name}" is lost. Create another: ${latchkey(`apps rotate ${id}`)}`);
  output.showValue(value, ({ colors: { bold } }) =>
    [
      ...(showsCode
        ? [`\n${bold(`Check a key in ${title}:`)}\n`, code.replaceAll(/^(?=.)/gm, "  ")]
        : [""]),
      `Created the private application "${escapeUnprintable(name)}" with ${permissions.join(" and ")}.`,
      `${bold("Its key is shown only once. Store it safely:")}\n`,
      `  ${escapeUnprintable(key)}\n\n`,
    ].join("\n"),
  );
}

/** Whether the user confirms on a terminal that the example is written. */
async function confirmWrite(file: string, { json }: InitFlags): Promise<boolean> {
  return !json && (await promptYesNo(`Write an example to ${file}?`));
}

/** Whether a file cannot be created there. Unlike `existsSync`, also for a link to a missing file. */
function isPathTaken(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

async function writeExample(file: string, code: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, code, { flag: "wx" });
  } catch (error) {
    throw new CommandError(`Cannot write ${file}: ${fileReason(error as Error)}`);
  }
}
