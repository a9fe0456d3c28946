import type { Command } from "commander";
import { addAccessCommands } from "./access/commands.js";
import { addApplicationCommands } from "./apps/commands.js";
import { addCompletionCommands } from "./completion.js";
import { addEventCommands } from "./events/commands.js";
import { addExample, fileArgument, fileOption, id, lazy, withJson } from "./options.js";
import { addProfileCommands } from "./profile/commands.js";
import { addSessionCommands } from "./sessions/commands.js";

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

/** Adds the commands that open the store directly, with the settings of the service. */
export function addStoreCommands(program: Command): void {
  const bootstrap = program
    .command("bootstrap")
    .description("create a tenant and its first management application, and print its key once")
    .option("--tenant <uuid>", "use this tenant (default: a new one)", id)
    .option("--name <name>", "name of the application")
    .action(lazy(async () => (await import("./bootstrap.js")).bootstrapCommand));
  addExample(withJson(bootstrap), "latchkey bootstrap --name 'Platform team' --json");

  const exporting = program
    .command("export")
    .description("write all records as lines of JSON, with hashes and without keys")
    .addOption(fileOption("--output <file>", "file to write (default: stdout)"))
    .option("--resume", "continue an interrupted export")
    .option("--no-events", "omit the audit log")
    .action(lazy(async () => (await import("./export.js")).exportCommand));
  addExample(withJson(exporting), "latchkey export --output latchkey.ndjson");

  const importing = program
    .command("import")
    .description("add the records of an export to the store; existing records are skipped")
    .addArgument(fileArgument("<file>", "the export, - for stdin"))
    .option("--dry-run", "only report what would change")
    .option("--replace", "overwrite existing records that differ")
    .action(lazy(async () => (await import("./import.js")).importCommand));
  addExample(withJson(importing), "latchkey import latchkey.ndjson --dry-run");

  const doctor = program
    .command("doctor")
    .description("check settings, store and machine, and suggest fixes; changes nothing")
    .action(lazy(async () => (await import("./doctor/doctor.js")).doctorCommand));
  addExample(withJson(doctor), "MONGODB_URI=mongodb://db:27017/?replicaSet=rs0 latchkey doctor");
}
