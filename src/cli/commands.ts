import type { Command } from "commander";
import { version } from "../config/settings.js";
import { addAccessCommands } from "./access.js";
import { addApplicationCommands } from "./apps/applications.js";
import { addCompletionCommands } from "./completion.js";
import { addEventCommands } from "./events.js";
import { addExample, findSubcommand, isListWord } from "./options.js";
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
  program.commandsGroup("Other commands:");
  addCompletionCommands(program);
  program
    .helpCommand(false)
    .command("help")
    .description("show help for a command")
    .argument("[command...]", "for example apps ls")
    .action((words: readonly string[]) => findCommand(program, words).help());
  const showVersion = program
    .command("version")
    .description("show the version")
    .action(() => {
      process.stdout.write(`${version}\n`);
    });
  addExample(showVersion, "latchkey version");
}

/** Finds a command by its name and those of its groups. */
function findCommand(program: Command, words: readonly string[]): Command {
  return words.reduce(
    (group, word) => findSubcommand(group, word) ?? refuseUnknown(group, word),
    program,
  );
}

/** A group reports an unknown command itself, with a suggestion. */
function refuseUnknown(group: Command, word: string): Command {
  if (isListWord(group, word)) {
    return group;
  }
  return group.commands.length > 0
    ? group.parse([word], { from: "user" })
    : group.error(`error: '${group.name()}' has no command '${word}'`);
}
