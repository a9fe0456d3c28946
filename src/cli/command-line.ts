import { CommanderError } from "commander";
import { exitCodes } from "./exit-codes.js";
import { reportFailure } from "./failure.js";
import { createProgram } from "./program.js";

/** A service that starts needs no other command: they are loaded for those who want one. */
const program =
  process.argv[2] === "serve"
    ? createProgram()
    : (await import("./all-commands.js")).createWholeProgram();

program.parseAsync().catch((error: Error) => {
  if (error instanceof CommanderError) {
    // It has been told already.
    process.exitCode = error.exitCode === 0 ? exitCodes.done.code : exitCodes.usage.code;
  } else {
    reportFailure(error);
  }
});
