import { open } from "node:fs/promises";
import { CommandFailure } from "./failure.js";
import { askHidden, canAsk } from "./prompt.js";
import { readStdin } from "./stdin.js";

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
