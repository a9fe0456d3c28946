import type { Command } from "commander";
import { addAccessCommands } from "./access-commands.js";
import { addApplicationCommands } from "./apps-commands.js";
import { addCompletionCommands } from "./completion-commands.js";
import { addEventCommands } from "./events-commands.js";
import { addProfileCommands } from "./profile-commands.js";
import { addSessionCommands } from "./sessions-commands.js";

/** The commands that call a service, and those about the command line itself. */
export function addClientCommands(program: Command): void {
  program.commandsGroup("Use a service:");
  addProfileCommands(program);
  addAccessCommands(program);
  addApplicationCommands(program);
  addSessionCommands(program);
  addEventCommands(program);
  program.commandsGroup("Other commands:").helpCommand("help [command]", "show help for a command");
  addCompletionCommands(program);
}
