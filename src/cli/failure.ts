import { visible } from "../transfer/visible.js";
import { type ExitName, exitCodes } from "./exit-codes.js";

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
