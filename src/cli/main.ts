import { type Command, CommanderError } from "commander";
import { exitCodes, reportError } from "./errors.js";
import { createProgram } from "./program.js";

const program = await createProgramFor(process.argv[2]);

/** Loads only the definitions that the command needs, so that `serve` starts fast. */
async function createProgramFor(name: string | undefined): Promise<Command> {
  const program = createProgram();
  const isDefined = () => program.commands.some((command) => command.name() === name);
  if (!isDefined()) {
    (await import("./commands.js")).addStoreCommands(program);
  }
  if (!isDefined()) {
    (await import("./commands.js")).addClientCommands(program);
  }
  return program;
}

program.parseAsync().catch((error: Error) => {
  if (error instanceof CommanderError) {
    // Commander has printed it already.
    process.exitCode = error.exitCode === 0 ? exitCodes.success.code : exitCodes.usage.code;
  } else {
    reportError(error);
  }
});
