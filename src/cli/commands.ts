import type { Command } from "commander";
import { addAccessCommands } from "./access.js";
import { addApplicationCommands } from "./apps/commands.js";
import { addCompletionCommands } from "./completion.js";
import { addEventCommands } from "./events.js";
import { addProfileCommands } from "./profile.js";
import { addSessionCommands } from "./sessions.js";

/** Adds the commands that call the service, and completion. */
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
