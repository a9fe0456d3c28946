import type { Command } from "commander";
import { addClientCommands } from "../../src/cli/commands.js";
import { createProgram } from "../../src/cli/program.js";

/** The command line with all of its commands. */
export function createWholeProgram(): Command {
  const program = createProgram();
  addClientCommands(program);
  return program;
}
