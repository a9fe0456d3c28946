import { visible } from "../lib/printable.js";

/** Why a command cannot do what it was asked to, fit to be shown. */
export class CommandFailure extends Error {
  override readonly name = "CommandFailure";

  constructor(
    /** A line for each thing that is wrong. */
    message: string,
    readonly exit: ExitName = "failed",
    /** What to do about it. */
    readonly hint?: string,
  ) {
    super(message);
  }
}

/** Tells on stderr why a command failed, and sets the exit code. */
export function reportFailure(thrown: unknown): void {
  const { message, hint, exit } = asFailure(thrown);
  for (const line of message.split("\n")) {
    process.stderr.write(`latchkey: ${visible(line)}\n`);
  }
  if (hint) {
    process.stderr.write(`${visible(hint)}\n`);
  }
  process.exitCode = exitCodes[exit].code;
}

function asFailure(thrown: unknown): CommandFailure {
  return thrown instanceof CommandFailure
    ? thrown
    : new CommandFailure(thrown instanceof Error ? thrown.message : String(thrown));
}

/** How the command line ends: what each exit code means, for scripts to rely on. */
export const exitCodes = {
  done: { code: 0, means: "done; of `check`: allowed" },
  failed: { code: 1, means: "it failed, as stderr says; of `doctor`: something is to be mended" },
  usage: { code: 2, means: "the command line, or what it asks for, is not valid" },
  denied: { code: 3, means: "of `check`: denied" },
  refused: { code: 4, means: "the key is missing, does not work, or does not allow this" },
  notFound: { code: 5, means: "there is no such application, session, key, nonce or profile" },
  conflict: { code: 6, means: "it was changed meanwhile, is used up, or is there already" },
  unreachable: { code: 7, means: "the service cannot be reached, or cannot answer now" },
  interrupted: { code: 130, means: "interrupted by Ctrl-C" },
} as const;

export type ExitName = keyof typeof exitCodes;
