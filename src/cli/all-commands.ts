import type { Command } from "commander";
import { addAccessCommands } from "./access-commands.js";
import { addApplicationCommands } from "./apps-commands.js";
import { addBenchCommand } from "./bench-command.js";
import { addCompletionCommands } from "./completion-commands.js";
import { addEventCommands } from "./events-commands.js";
import { addProfileCommands } from "./profile-commands.js";
import { createProgram } from "./program.js";
import { addSessionCommands } from "./sessions-commands.js";
import { addStoreCommands } from "./store-commands.js";

/** The whole command line. */
export function createWholeProgram(): Command {
  const program = createProgram();
  addStoreCommands(program);
  program.commandsGroup("Use a service:");
  addProfileCommands(program);
  addAccessCommands(program);
  addApplicationCommands(program);
  addSessionCommands(program);
  addEventCommands(program);
  addBenchCommand(program);
  program.commandsGroup("Other commands:").helpCommand("help [command]", "show help for a command");
  addCompletionCommands(program);
  return program;
}
