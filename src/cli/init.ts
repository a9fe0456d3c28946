import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join } from "node:path";
import type { Application } from "../../gen/latchkey/v1/application_service_pb.js";
import { createGuardSamples, type SampleLanguage } from "../contract/samples/samples.js";
import { createServiceClient, toCommandError } from "./client.js";
import { type Profile, type Profiles, parseText, readProfiles } from "./connection.js";
import { CommandError } from "./errors.js";
import { defaultUrl, serviceUrl } from "./options.js";
import { createOutput, type Output, type OutputFlags } from "./output.js";
import { readKey, saveProfile, verifyKey } from "./profile.js";
import { ask, isInteractive } from "./prompt.js";

interface InitFlags extends OutputFlags {
  readonly url?: string;
  readonly keyFile?: string;
  readonly keyHeader?: string;
  /** The name of the profile. */
  readonly profile?: string;
  /** The name of the application. */
  readonly name?: string;
  readonly write?: boolean;
  /** Milliseconds. */
  readonly timeout: number;
}

/** With both, the example can check its own key, which is then allowed. */
const permissions = ["access:check", "token:read"] as const;

/** Connects to a service, creates an application, and shows how to check a key in this folder's language. */
export async function initCommand(flags: InitFlags): Promise<void> {
  const output = createOutput(flags);
  const example = exampleFor(process.cwd());
  if (flags.write) {
    refuseExisting(example.file);
  }
  const profiles = await readProfiles();
  const name = flags.profile ?? profiles.current ?? "local";
  const { profile, isNew } = await connect(name, profiles, flags);
  const application = await createApplication(profile, flags);
  output.note(
    `Created the private application "${application.name}" with ${permissions.join(" and ")}.`,
  );
  const code = codeFor(example.language, profile);
  showResult(output, { name, url: profile.url, application, example, code });
  // Last, so that a profile that cannot create applications is not saved.
  if (isNew) {
    await saveProfile(name, profile, profiles);
  }
  output.note(`${isNew ? "Saved" : "Used"} the profile "${name}" for ${profile.url}.`);
  const isWritten = await writeExample(example.file, code, flags);
  output.note(
    `${isWritten ? "Wrote" : "Save the program as"} ${example.file}. Let it check its own key:`,
  );
  for (const command of example.commands) {
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
  const profile = existing ?? (await askForProfile(flags));
  await verifyKey(profile, flags);
  return { profile, isNew: !existing };
}

async function askForProfile(flags: InitFlags): Promise<Profile> {
  const url =
    flags.url ?? parseText("URL", serviceUrl, await ask("URL of the service", defaultUrl));
  return { url, keyHeader: flags.keyHeader, key: await readKey(url, flags) };
}

async function createApplication(profile: Profile, flags: InitFlags): Promise<Application> {
  const folder = basename(process.cwd()) || "My service";
  const name = flags.name ?? (await ask("Name of your first application", folder));
  const client = createServiceClient(profile);
  try {
    return await client.applications.createApplication(
      { name, type: "private", permissions: [...permissions] },
      { timeoutMs: flags.timeout },
    );
  } catch (error) {
    throw toCommandError(error, profile.url, { name });
  } finally {
    client.close();
  }
}

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
    const file = isTypeScript ? "latchkey-guard.ts" : "latchkey-guard.mjs";
    return {
      language: "typescript",
      title: isTypeScript ? "TypeScript" : "JavaScript",
      file,
      commands: [
        `npm install ${packageSource()}`,
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
  return folder.split(/[\\/]/).includes("node_modules") ? "latchkey" : folder;
}

function codeFor(language: SampleLanguage, { url, keyHeader }: Profile): string {
  const samples = createGuardSamples({ origin: url, keyHeader, permission: permissions[1] });
  const code = samples.find((sample) => sample.language === language)?.code;
  return `${code}\n`;
}

interface Result {
  readonly name: string;
  readonly url: string;
  readonly application: Application;
  readonly example: Example;
  readonly code: string;
}

function showResult(output: Output, { name, url, application, example, code }: Result): void {
  const { id, key } = application;
  const { language, title, file } = example;
  const value = { profile: name, url, application_id: id, key, example: { language, file, code } };
  output.showValue(value, ({ colors: { bold } }) =>
    [
      `\n${bold("Its key is shown only once. Store it safely:")}\n`,
      `  export SVC_API_KEY=${key}\n`,
      `${bold(`Check a key in ${title}:`)}\n`,
      code.replaceAll(/^(?=.)/gm, "  "),
      "",
    ].join("\n"),
  );
}

/** Writes the example with --write, or if the user agrees. Returns whether it was written. */
async function writeExample(
  file: string,
  code: string,
  { write, json }: InitFlags,
): Promise<boolean> {
  const mayAsk = !json && isInteractive() && !existsSync(file);
  if (!write && !(mayAsk && /^y(es)?$/i.test(await ask(`Write it to ${file}?`, "no")))) {
    return false;
  }
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, code, { flag: "wx" });
  return true;
}

function refuseExisting(file: string): void {
  if (existsSync(file)) {
    throw new CommandError(`${file} already exists.`, "conflict", "Delete it, or omit --write.");
  }
}
