import type { Command } from "commander";
import { addAccessCommands } from "./access/commands.js";
import { addApplicationCommands } from "./apps/commands.js";
import { addCompletionCommands } from "./completion/commands.js";
import { addEventCommands } from "./events/commands.js";
import { example, fileArgument, fileOption, id, lazily, withJson } from "./options.js";
import { addProfileCommands } from "./profile/commands.js";
import { addSessionCommands } from "./sessions/commands.js";

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

/** The commands that work on the store itself, with the settings of the service. */
export function addStoreCommands(program: Command): void {
  const bootstrap = program
    .command("bootstrap")
    .description("make a tenant and its first management application, and show its key once")
    .option("--tenant <uuid>", "the tenant to make it in (default: a new one)", id)
    .option("--name <name>", "what to call the application")
    .action(lazily(async () => (await import("./bootstrap.js")).bootstrapCommand));
  example(withJson(bootstrap), "latchkey bootstrap --name 'Platform team' --json");

  const exporting = program
    .command("export")
    .description("write all that the store holds as lines of JSON, with hashes and never keys")
    .addOption(fileOption("--output <file>", "the file to write (default: stdout)"))
    .option("--resume", "go on with a file whose export did not end")
    .option("--no-events", "leave out what happened")
    .action(lazily(async () => (await import("./export.js")).exportCommand));
  example(withJson(exporting), "latchkey export --output latchkey.ndjson");

  const importing = program
    .command("import")
    .description("add what an export holds to the store; what is there already is passed over")
    .addArgument(fileArgument("<file>", "the export, or - for stdin"))
    .option("--dry-run", "only tell what would be done")
    .option("--replace", "replace what is there and differs")
    .action(lazily(async () => (await import("./import.js")).importCommand));
  example(withJson(importing), "latchkey import latchkey.ndjson --dry-run");

  const doctor = program
    .command("doctor")
    .description("check settings, store and machine, change nothing, and say what to mend")
    .action(lazily(async () => (await import("./doctor/doctor.js")).doctorCommand));
  example(withJson(doctor), "MONGODB_URI=mongodb://db:27017/?replicaSet=rs0 latchkey doctor");
}
