import { CommanderError } from "commander";
import { exitCodes, reportError } from "./errors.js";
import { createProgram } from "./program.js";

const program = createProgram();
if (!program.commands.some((command) => command.name() === process.argv[2])) {
  const { addClientCommands } = await import("./commands.js");
  addClientCommands(program);
}

program.parseAsync().catch((error: Error) => {
  if (error instanceof CommanderError) {
    // Commander has printed it already.
    process.exitCode = error.exitCode === 0 ? exitCodes.success.code : exitCodes.usage.code;
  } else {
    reportError(error);
  }
});
