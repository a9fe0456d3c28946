import { Command } from "commander";
import { version } from "../lib/version.js";
import { exitCodes } from "./errors.js";
import { serve } from "./serve.js";

/** The command line, with the one command that runs for long: others are added where they are needed. */
export function createProgram(): Command {
  const program = new Command("latchkey")
    .description("Credential and session service, and all that is done with it.")
    .version(version, "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .configureHelp({ showGlobalOptions: false, sortSubcommands: false })
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, "latchkey: ")),
    })
    .showHelpAfterError("Add --help to see how it is used.")
    .exitOverride();
  program
    .commandsGroup("Run a service:")
    .command("serve")
    .description("run the service; its settings are environment variables (see the README)")
    .addHelpText("after", "\nExample:\n  PORT=8080 DATA_DIR=./data latchkey serve")
    .action(serve);
  return program.addHelpText("after", exitCodeHelp());
}

function exitCodeHelp(): string {
  const lines = Object.values(exitCodes).map(
    ({ code, means }) => `  ${String(code).padEnd(3)}  ${means.replaceAll("`", "")}`,
  );
  return `\nExit codes:\n${lines.join("\n")}\n\nExamples:\n  latchkey serve\n  latchkey profile add local\n  latchkey apps ls`;
}
