import type { Command } from "commander";
import { addClientCommands } from "../../src/cli/client-commands.js";
import { createProgram } from "../../src/cli/program.js";
import { addStoreCommands } from "../../src/cli/store-commands.js";

/** The command line with all of its commands. */
export function createWholeProgram(): Command {
  const program = createProgram();
  addStoreCommands(program);
  addClientCommands(program);
  return program;
}
