import { Command } from "commander";
import { readSettings, version } from "../config/settings.js";
import { exitCodes } from "./errors.js";

/** Creates the command line with `serve` only. The other commands are added when needed. */
export function createProgram(): Command {
  const program = new Command("latchkey")
    .description("Credential and session service, and its command-line client.")
    .version(version, "-V, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .configureHelp({ showGlobalOptions: false, sortSubcommands: false })
    .configureOutput({
      outputError: (text, write) => write(text.replace(/^error: /, "latchkey: ")),
    })
    .showHelpAfterError("Run with --help for usage.")
    .exitOverride();
  program
    .commandsGroup("Run a service:")
    .command("serve")
    .description(
      "run the service; its settings are environment variables, see docs/reference/settings.md",
    )
    .addHelpText("after", "\nExample:\n  PORT=8080 DATA_DIR=./data latchkey serve")
    .action(serve);
  return program.addHelpText("after", exitCodeHelp());
}

/** Runs the service. Loads only the modules that this process needs. */
async function serve(): Promise<void> {
  const settings = readSettings();
  if (settings.workers > 1) {
    const { supervise } = await import("../cluster/supervisor.js");
    await supervise(settings);
  } else {
    const { serveStandalone } = await import("../serve.js");
    await serveStandalone(settings);
  }
}

function exitCodeHelp(): string {
  const lines = Object.values(exitCodes).map(
    ({ code, means }) => `  ${String(code).padEnd(3)}  ${means.replaceAll("`", "")}`,
  );
  return `\nExit codes:\n${lines.join("\n")}\n\nExamples:\n  latchkey serve\n  latchkey profile add local\n  latchkey apps ls`;
}
