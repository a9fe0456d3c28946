import { execFile } from "node:child_process";
import { mkdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { stopOnExit } from "./child-processes.js";
import { ownFolder } from "./servers.js";

/** Another commit of Latchkey, built in a temporary folder. */
export interface Commit {
  /** The short hash. */
  readonly name: string;
  readonly folder: string;
}

/** Builds the service of a commit, with the packages that are installed here if it needs the same. */
export async function buildCommit(ref: string, parent: string): Promise<Commit> {
  const name = await run("git", ["rev-parse", "--short", "--verify", `${ref}^{commit}`], ownFolder);
  const folder = join(parent, name);
  await mkdir(folder);
  const archive = join(parent, `${name}.tar`);
  await run("git", ["archive", `--output=${archive}`, name], ownFolder);
  await run("tar", ["-xf", archive, "-C", folder], folder);
  if (await hasSamePackages(folder)) {
    await symlink(join(ownFolder, "node_modules"), join(folder, "node_modules"));
  } else {
    await run("npm", ["ci", "--ignore-scripts"], folder);
  }
  await run("npm", ["exec", "--call", "tools/service/bundle.sh"], folder);
  // No measured request is for a web page, and building them takes long.
  await symlink(join(ownFolder, "dist/web"), join(folder, "dist/web"));
  return { name, folder };
}

async function hasSamePackages(folder: string): Promise<boolean> {
  const [own, other] = await Promise.all(
    [ownFolder, folder].map((path) => readFile(join(path, "package-lock.json"), "utf8")),
  );
  return own === other;
}

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const running = promisify(execFile)(command, args, { cwd });
  stopOnExit(running.child);
  return (await running).stdout.trim();
}
