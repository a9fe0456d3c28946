import { open } from "node:fs/promises";
import { createInterface } from "node:readline/promises";
import { visible } from "../lib/printable.js";
import { CommandFailure, exitCodes } from "./errors.js";

/** Whether there is somebody to ask. What is asked goes to stderr: stdout may be read by a program. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Asks for a line that everybody may see. */
async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  lines.on("SIGINT", interrupt);
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
}

/** Asks for a line that nobody sees. */
async function askHidden(question: string): Promise<string> {
  const { stdin, stderr } = process;
  // Before it is asked: what is typed at once would be shown.
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
        typed = afterKey(typed, character);
      }
    }
    return typed;
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write("\n");
  }
}

function afterKey(typed: string, character: string): string {
  switch (character) {
    case "\u0003":
      process.stdin.setRawMode(false);
      return interrupt();
    case "\u007f":
    case "\b":
      return typed.slice(0, -1);
    case "\u0015":
      return "";
    default:
      return character < " " ? typed : typed + character;
  }
}

function interrupt(): never {
  process.stderr.write("\n");
  process.exit(exitCodes.interrupted.code);
}

/**
 * Makes sure that what cannot be taken back is meant: by `--yes`, or by the
 * answer that is asked for.
 */
export async function confirm(
  what: string,
  { yes = false, answer = "yes" }: { readonly yes?: boolean | undefined; readonly answer?: string },
): Promise<void> {
  if (yes) {
    return;
  }
  if (!canAsk()) {
    throw new CommandFailure(`${what} Nobody can be asked here: say --yes to do it.`, "usage");
  }
  const given = await ask(`${visible(what)}\nType "${visible(answer)}" to go on: `);
  if (given !== answer) {
    throw new CommandFailure("Nothing was done.");
  }
}

interface SecretInput {
  /** What it is, for example `the key`. */
  readonly noun: string;
  /** The file that has it, or `-` for stdin, where one is named. */
  readonly file?: string | undefined;
}

/** More than this is no key. */
const mostBytes = 4_096;

/** Reads a key or nonce from a file, from a person, or from stdin, and never from the arguments, which others see. */
export async function readSecret({ noun, file }: SecretInput): Promise<string> {
  if (file !== undefined && file !== "-") {
    return oneLine(await readFileStart(file, noun), noun, file);
  }
  if (file === undefined && canAsk()) {
    return oneLine(await askHidden(`${capitalized(noun)}: `), noun, "what was typed");
  }
  return oneLine(await readStdin(mostBytes), noun, "stdin");
}

async function readFileStart(path: string, noun: string): Promise<string> {
  const file = await open(path).catch((error) => {
    throw new CommandFailure(`${noun} cannot be read: ${error.message}`);
  });
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(mostBytes + 1));
    return buffer.toString("utf8", 0, bytesRead);
  } finally {
    await file.close();
  }
}

function oneLine(text: string, noun: string, place: string): string {
  const line = text.trim();
  if (line === "") {
    throw new CommandFailure(`There is no ${noun.replace(/^the /, "")} in ${place}.`, "usage");
  }
  // What it is may not be told: it may be a secret all the same.
  if (/[^!-~]/.test(line)) {
    throw new CommandFailure(
      `${place} has more than ${noun}: it should hold that alone, on one line.`,
      "usage",
    );
  }
  return line;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

let isRead = false;

/** All of stdin, up to a limit. It is read once, for whatever was to come from it. */
export async function readStdin(mostBytes = Number.POSITIVE_INFINITY): Promise<string> {
  if (isRead) {
    throw new CommandFailure("stdin can give one thing only: read the others from files.", "usage");
  }
  isRead = true;
  let text = "";
  for await (const chunk of process.stdin.setEncoding("utf8")) {
    text += chunk;
    if (text.length > mostBytes) {
      break;
    }
  }
  return text;
}
