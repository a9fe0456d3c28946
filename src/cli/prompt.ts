import { open } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { escapeUnprintable } from "../lib/terminal.js";
import { CommandError, exitCodes } from "./errors.js";

/** Whether a person can respond to prompts. Prompts go to stderr, because a program may read stdout. */
export function isInteractive(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Requires `--yes`, or that the user types the expected text. */
export async function confirm(
  consequence: string,
  { yes = false, typed = "yes" }: { readonly yes?: boolean | undefined; readonly typed?: string },
): Promise<void> {
  if (yes) {
    return;
  }
  if (!isInteractive()) {
    throw new CommandError(`${consequence} Not a terminal; pass --yes to confirm.`, "usage");
  }
  const response = await prompt(
    `${escapeUnprintable(consequence)}\nType "${escapeUnprintable(typed)}" to confirm: `,
  );
  if (response !== typed) {
    throw new CommandError("Canceled. Nothing was changed.");
  }
}

async function prompt(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  lines.on("SIGINT", interrupt);
  try {
    return await lines.question(question);
  } finally {
    lines.close();
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
    return parseSecret(await promptHidden(`${capitalize(noun)}: `), noun, "the input");
  }
  return parseSecret(await readStdin(maxSecretBytes), noun, "stdin");
}

async function readFileStart(path: string, noun: string): Promise<string> {
  const file = await open(path).catch((error) => {
    throw new CommandError(`Cannot read the ${noun} from ${path}: ${error.message}`);
  });
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(maxSecretBytes + 1));
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
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

/** Prompts without echo. */
async function promptHidden(question: string): Promise<string> {
  const { stdin, stderr } = process;
  // Raw mode starts before the prompt, so that nothing typed early is echoed.
  stdin.setRawMode(true);
  stdin.setEncoding("utf8");
  stderr.write(question);
  try {
    let typed = "";
    for await (const chunk of stdin.iterator({ destroyOnReturn: false })) {
      for (const character of chunk as string) {
        if (character === "\r" || character === "\n" || character === "\u0004") {
          return typed;
        }
        typed = applyKey(typed, character);
      }
    }
    return typed;
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write("\n");
  }
}

function applyKey(typed: string, character: string): string {
  switch (character) {
    case "\u0003": // Ctrl-C
      process.stdin.setRawMode(false);
      return interrupt();
    case "\u007f": // Delete
    case "\b":
      return typed.slice(0, -1);
    case "\u0015": // Ctrl-U
      return "";
    default:
      return character < " " ? typed : typed + character;
  }
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
