import { Command, InvalidArgumentError } from "commander";
import type { BootstrapFlags } from "./bootstrap-command.js";
import { readSettings, type Settings } from "./config.js";
import type { ExportFlags } from "./export-command.js";
import { isId } from "./ids.js";
import type { ImportFlags } from "./import-command.js";

const program = new Command("latchkey").description(
  "Credential and session service. Settings come from environment variables: see docs/operations.md.",
);

program
  .command("serve")
  .description("run the service")
  .action(() => run(readSettings()));

program
  .command("bootstrap")
  .description("make a tenant and its first management application, and show its key once")
  .option("--tenant <uuid>", "the tenant to make it in (default: a new one)", tenant)
  .option("--name <name>", "what to call the application")
  .option("--json", "print one line of JSON")
  .addHelpText("after", "\nExample:\n  latchkey bootstrap --name 'Platform team' --json")
  .action(async (flags: BootstrapFlags) => {
    const settings = readSettings();
    const { bootstrapCommand } = await import("./bootstrap-command.js");
    process.stdout.write(await bootstrapCommand(settings, flags));
  });

program
  .command("export")
  .description("write all that the store holds as lines of JSON, with hashes and never keys")
  .option("--output <file>", "the file to write (default: stdout)")
  .option("--resume", "go on with a file whose export did not end")
  .option("--no-events", "leave out what happened")
  .addHelpText("after", "\nExample:\n  latchkey export --output latchkey.ndjson")
  .action(async (flags: ExportFlags) => {
    const settings = readSettings();
    const { exportCommand } = await import("./export-command.js");
    await exportCommand(settings, flags);
  });

program
  .command("import")
  .description("add what an export holds to the store; what is there already is passed over")
  .argument("<file>", "the export, or - for stdin")
  .option("--dry-run", "only tell what would be done")
  .option("--replace", "replace what is there and differs")
  .addHelpText("after", "\nExample:\n  latchkey import latchkey.ndjson --dry-run")
  .action(async (file: string, flags: ImportFlags) => {
    const settings = readSettings();
    const { importCommand } = await import("./import-command.js");
    const isGood = await importCommand(settings, file, flags);
    process.exitCode = isGood ? 0 : 1;
  });

/** Loads only what this process needs for its part in the service. */
async function run(settings: Settings): Promise<void> {
  if (settings.workers > 1) {
    const { supervise } = await import("./workers/supervise.js");
    await supervise(settings);
  } else {
    const { serveAlone } = await import("./serve-alone.js");
    await serveAlone(settings);
  }
}

function tenant(text: string): string {
  if (!isId(text)) {
    throw new InvalidArgumentError("It must be a UUID.");
  }
  return text;
}

program.parseAsync().catch((error: Error) => {
  for (const problem of error.message.split("\n")) {
    process.stderr.write(`latchkey: ${problem}\n`);
  }
  process.exitCode = 1;
});
