import { CommanderError } from "commander";
import { escapeUnprintable } from "../lib/terminal.js";
import { wrapText } from "./text.js";

/** The exit codes of every command. Scripts rely on them. */
export const exitCodes = {
  success: { code: 0, description: "Success. `check`: allowed." },
  failed: { code: 1, description: "Failure, described on stderr. `doctor`: a check failed." },
  usage: { code: 2, description: "Invalid command line or request." },
  denied: { code: 3, description: "`check`: denied." },
  unauthorized: { code: 4, description: "The key is missing, invalid or lacks permission." },
  notFound: {
    code: 5,
    description: "Application, session, event, key, nonce or profile not found.",
  },
  conflict: {
    code: 6,
    description: "Conflict: changed meanwhile, already used, or already exists.",
  },
  unreachable: { code: 7, description: "The service is unreachable, overloaded or too slow." },
  interrupted: { code: 130, description: "Interrupted by Ctrl-C." },
} as const;

/** A command to suggest. It can be run as printed, also if this process was started by npx. */
export function latchkey(args: string): string {
  return `${process.env.npm_command === "exec" ? "npx latchkey" : "latchkey"} ${args}`;
}

export type ExitName = keyof typeof exitCodes;

/** An error whose message is written for the user of a command. */
export class CommandError extends Error {
  override readonly name = "CommandError";

  constructor(
    /** One line per problem. */
    message: string,
    readonly exit: ExitName = "failed",
    /** How to fix it, on one or more lines. */
    readonly hint?: string,
  ) {
    super(message);
  }
}

/** Prints an error on stderr, unless commander has printed it, and sets the exit code. */
export function reportError(thrown: unknown): void {
  if (thrown instanceof CommanderError) {
    process.exitCode = exitCodes[thrown.exitCode === 0 ? "success" : "usage"].code;
    return;
  }
  const { message, hint, exit } = toReportable(thrown);
  const lines = message.split("\n").map((line) => `latchkey: ${line}`);
  for (const line of [...lines, ...(hint ? hint.split("\n") : [])]) {
    process.stderr.write(`${wrapForStderr(line)}\n`);
  }
  process.exitCode = exitCodes[exit].code;
}

/** Makes text safe to print, and on a terminal breaks it between words. Indented text is not broken: people copy it. */
export function wrapForStderr(text: string): string {
  const { isTTY, columns } = process.stderr;
  const safe = escapeUnprintable(text);
  return isTTY && !safe.startsWith(" ") ? wrapText(safe, columns || 80).join("\n") : safe;
}

/** Why a file could not be read or written: `no such file or directory`. */
export function fileReason({ message }: Error): string {
  return message.replace(/^E[A-Z]+: (.+?), \w+.*$/s, "$1");
}

function toReportable(thrown: unknown): CommandError {
  return thrown instanceof CommandError
    ? thrown
    : new CommandError(thrown instanceof Error ? thrown.message : String(thrown));
}
