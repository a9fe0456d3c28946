import { once } from "node:events";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { escapeUnprintable } from "../lib/terminal.js";
import { CommandError, exitCodes, fileReason, wrapForStderr } from "./errors.js";

/** Whether a person can respond to prompts. Prompts go to stderr, because a program may read stdout. */
export function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** The option of commands that require confirmation. */
export interface ConfirmFlags {
  readonly yes?: boolean;
}

/** Requires `--yes`, or that the user types the expected text as the prompt shows it. */
export async function confirm(
  consequence: string,
  { yes = false }: ConfirmFlags,
  typed = "yes",
): Promise<void> {
  if (yes) {
    return;
  }
  if (!isInteractive()) {
    throw new CommandError(`${consequence} Not a terminal; pass --yes to confirm.`, "usage");
  }
  const expected = escapeUnprintable(typed);
  const response = await prompt(`${wrapForStderr(consequence)}\nType "${expected}" to confirm: `);
  if (response !== expected && !(expected === "yes" && response.toLowerCase() === "y")) {
    throw new CommandError("Canceled. Nothing was changed.");
  }
}

/** Prompts for a value. Returns the default for an empty response, or without a terminal. */
export async function promptWithDefault(label: string, defaultValue: string): Promise<string> {
  const shown = escapeUnprintable(`${label} [${defaultValue}]: `);
  return (isInteractive() && (await prompt(shown)).trim()) || defaultValue;
}

/** Asks a yes/no question. The default is yes. Returns false without a terminal. */
export async function promptYesNo(question: string): Promise<boolean> {
  return isInteractive() && /^y(es)?$/i.test(await promptWithDefault(question, "yes"));
}

/** Prompts on the terminal. Hidden input is not shown. Ctrl-D counts as an empty response. */
async function prompt(question: string, { isHidden = false } = {}): Promise<string> {
  const { stdin: input, stderr } = process;
  // In a terminal, the interface itself writes the question and what is typed.
  const output = isHidden ? new Writable({ write: (_, __, done) => done() }) : stderr;
  const lines = createInterface({ input, output, terminal: true });
  lines.on("SIGINT", interrupt);
  const closed = once(lines, "close").then(() => "");
  if (isHidden) {
    stderr.write(question);
  }
  // Newer versions of Node.js reject on Ctrl-D.
  const typed = lines.question(question).catch(() => "");
  try {
    return await Promise.race([typed, closed]);
  } finally {
    lines.close();
    if (isHidden) {
      stderr.write("\n");
    }
  }
}

interface SecretSource {
  /** For example `key`. */
  readonly noun: string;
  /** The file that contains it, or `-` for stdin. */
  readonly file?: string | undefined;
}

/** More than the length of any key. */
const maxSecretBytes = 4_096;

/** Reads a key or nonce from a file, a hidden prompt or stdin, never from arguments: other users see those. */
export async function readSecret({ noun, file }: SecretSource): Promise<string> {
  if (file !== undefined && file !== "-") {
    return parseSecret(await readFileStart(file, noun), noun, file);
  }
  if (file === undefined && isInteractive()) {
    const typed = await prompt(`${capitalize(noun)}: `, { isHidden: true });
    if (typed.trim() === "") {
      throw new CommandError(`No ${noun} was entered.`, "usage");
    }
    return parseSecret(typed, noun, "The input");
  }
  return parseSecret(await readStdin(maxSecretBytes), noun, "stdin");
}

async function readFileStart(path: string, noun: string): Promise<string> {
  try {
    const file = await open(path);
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(maxSecretBytes + 1));
      return buffer.toString("utf8", 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw new CommandError(`Cannot read the ${noun} from ${path}: ${fileReason(error as Error)}`);
  }
}

function parseSecret(text: string, noun: string, source: string): string {
  const secret = text.trim();
  if (secret === "") {
    throw new CommandError(`${source} is empty: it must contain the ${noun}.`, "usage");
  }
  // The message must not include the text: it may contain a secret.
  if (/[^!-~]/.test(secret)) {
    throw new CommandError(`${source} must contain only the ${noun}, on one line.`, "usage");
  }
  return secret;
}

function interrupt(): never {
  process.stderr.write("\n");
  process.exit(exitCodes.interrupted.code);
}

function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

let isStdinRead = false;

/** Reads stdin up to a limit. A second call throws: stdin can supply one value only. */
export async function readStdin(maxBytes = Number.POSITIVE_INFINITY): Promise<string> {
  if (isStdinRead) {
    throw new CommandError(
      "Only one input can come from stdin. Use files for the others.",
      "usage",
    );
  }
  isStdinRead = true;
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > maxBytes) {
      break;
    }
  }
  return text;
}
