import type { Command } from "commander";
import { addClientCommands, addStoreCommands } from "../../src/cli/commands.js";
import { createProgram } from "../../src/cli/program.js";

/** The command line with all of its commands. */
export function createWholeProgram(): Command {
  const program = createProgram();
  addStoreCommands(program);
  addClientCommands(program);
  return program;
}
