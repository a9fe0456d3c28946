import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { latchkeyPath } from "../support/service/run-latchkey.js";

/** A command block of a documentation page. */
interface Command {
  readonly script: string;
  /** The output that the page shows. `…` stands for any text. */
  readonly expected?: string | undefined;
  /** From a comment above the block, such as `<!-- test: skip -->`. Labeled blocks are not run. */
  readonly label?: string | undefined;
}

const fences = /^(?:<!-- test: ([a-z ]+) -->\n)?```(\w+)\n(.*?)^```$/gms;
const fileName = /^(?:\/\/|<!--) (\S+\.\w+)/;

/**
 * The command blocks of a page, in order. A `json` or `text` block is the output of the command
 * above it. A block of code whose first line is a comment with a file name becomes that file.
 */
export function commandsIn(page: string): Command[] {
  const commands: Command[] = [];
  for (const [, label, language, text = ""] of readFileSync(page, "utf8").matchAll(fences)) {
    const [, file] = fileName.exec(text) ?? [];
    const last = commands.at(-1);
    if (language === "sh") {
      commands.push({ script: text, label });
    } else if (language === "json" || language === "text") {
      if (last === undefined || last.expected !== undefined) {
        throw new Error(`${page} shows output without a command: ${text}`);
      }
      commands.splice(-1, 1, { ...last, expected: text });
    } else if (file !== undefined) {
      commands.push({ script: `cat > ${file} <<'END_OF_FILE'\n${text}END_OF_FILE\n` });
    }
  }
  return commands;
}

/** A pattern for the shown output. Ignores white space, because pages format JSON. */
export function toPattern(expected: string): RegExp {
  const literal = withoutSpace(expected).replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return new RegExp(`^${literal.replaceAll("…", ".*")}$`);
}

export const withoutSpace = (text: string) => text.replaceAll(/\s/g, "");

const separator = "--- next command ---";

/** Replaces npm and npx: tests have no network, so packages are links to the installed ones. */
const prelude = (repository: string) => `
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
npm() {
  local name
  for name in "\${@:2}"; do
    case $name in
      --*) continue ;;
      /*) mkdir -p node_modules && ln -sfn "$name" node_modules/latchkey ;;
      *) mkdir -p "$(dirname "node_modules/$name")" && ln -sfn "${repository}/node_modules/$name" "node_modules/$name" ;;
    esac
  done
}
npx() {
  local program="${repository}/node_modules/.bin/$1"
  [ "$1" != latchkey ] || program="${repository}/${latchkeyPath}"
  # In the background, the program itself must get the signal of kill.
  if [ "$BASHPID" != "$$" ]; then exec node "$program" "\${@:2}"; fi
  node "$program" "\${@:2}"
}
`;

/** Creates a writable folder with links to the contents of this repository. */
export async function cloneFolder(parent: string): Promise<string> {
  const folder = join(parent, "clone");
  await mkdir(folder);
  const names = ["dist", "docs", "examples", "node_modules", "package.json", "proto"];
  await Promise.all(names.map((name) => symlink(resolve(name), join(folder, name))));
  return folder;
}

interface RunOptions {
  readonly cwd: string;
  /** Replaces texts of the page, such as the port. */
  readonly replacements: Readonly<Record<string, string>>;
  /** What the user types at a prompt. */
  readonly input: string;
}

/** Runs the commands of a page in one shell. Returns the actual and the shown output of each. */
export async function runCommands(
  commands: readonly Command[],
  { cwd, replacements, input }: RunOptions,
): Promise<{ script: string; expected: string | undefined; output: string }[]> {
  const replaceAll = (text: string) =>
    Object.entries(replacements).reduce((result, [from, to]) => result.replaceAll(from, to), text);
  const unlabeled = commands.filter(({ label }) => label === undefined);
  const scripts = unlabeled.map(({ script }) => replaceAll(script));
  const program = [prelude(resolve(".")), scripts.join(`\necho '\n${separator}'\n`)].join("\n");
  const shell = promisify(execFile)("bash", ["-euo", "pipefail", "-c", program], {
    cwd,
    env: { PATH: process.env.PATH ?? "", HOME: cwd },
  });
  shell.child.stdin?.end(input);
  const { stdout } = await shell;
  const outputs = stdout.split(`${separator}\n`);
  return unlabeled.map(({ script, expected }, index) => ({
    script,
    expected: expected && replaceAll(expected),
    output: outputs[index] ?? "",
  }));
}
