import { createInterface } from "node:readline/promises";
import { visible } from "../transfer/visible.js";
import { exitCodes } from "./exit-codes.js";
import { CommandFailure } from "./failure.js";

/** Whether there is somebody to ask. What is asked goes to stderr: stdout may be read by a program. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/** Asks for a line that everybody may see. */
export async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  lines.on("SIGINT", interrupt);
  try {
    return await lines.question(question);
  } finally {
    lines.close();
  }
}

/** Asks for a line that nobody sees. */
export async function askHidden(question: string): Promise<string> {
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
