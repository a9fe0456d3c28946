import { type Command, CommanderError } from "commander";
import { exitCodes, reportFailure } from "./errors.js";
import { createProgram } from "./program.js";

const program = await programFor(process.argv[2]);

/** Loads only the commands that are needed: a service starts sooner without the others. */
async function programFor(name: string | undefined): Promise<Command> {
  const program = createProgram();
  const isKnown = () => program.commands.some((command) => command.name() === name);
  if (!isKnown()) {
    (await import("./commands.js")).addStoreCommands(program);
  }
  if (!isKnown()) {
    (await import("./commands.js")).addClientCommands(program);
  }
  return program;
}

program.parseAsync().catch((error: Error) => {
  if (error instanceof CommanderError) {
    // It has been told already.
    process.exitCode = error.exitCode === 0 ? exitCodes.done.code : exitCodes.usage.code;
  } else {
    reportFailure(error);
  }
});
