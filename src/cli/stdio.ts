import { CommandError, fileReason, reportError } from "./errors.js";

let lossHint: string | undefined;

/** From now on, a command fails if its reader closes the pipe. The hint describes the loss and how to recover. */
export function requireReader(hint: string): void {
  lossHint = hint;
}

/** Ends the process with one line if stdout cannot be written, and quietly if a reader such as `head` has closed it. */
export function handleOutputErrors(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    const isClosed = error.code === "EPIPE";
    if (!isClosed || lossHint !== undefined) {
      const reason = isClosed ? "its reader closed it" : fileReason(error);
      reportError(new CommandError(`Cannot write to stdout: ${reason}.`, "failed", lossHint));
    }
    process.exit();
  });
  // The exit code still describes the result.
  process.stderr.on("error", () => {});
}
