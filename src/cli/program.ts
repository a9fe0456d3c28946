import { Command, type ErrorOptions, Option } from "commander";
import { readSettings, version } from "../config/settings.js";
import { CommandError, exitCodes, wrapForStderr } from "./errors.js";
import { parseId, parseProfileName } from "./option-values.js";
import {
  addExample,
  fileArgument,
  fileOption,
  helpFormat,
  helpTitle,
  lazy,
  reportUnknown,
  withJson,
  withNewConnection,
} from "./options.js";
import { optionalSettings, storeSettings, withSettings } from "./settings.js";

/**
 * Commander suggests a similar option for `serve --prot 80`, but not for `serve --prot=80`, before a
 * subcommand, or if another option is missing.
 */
class LatchkeyCommand extends Command {
  override createCommand(name?: string): Command {
    return new LatchkeyCommand(name);
  }

  override error(message: string, options?: ErrorOptions): never {
    if (message.startsWith("error: required option")) {
      // The missing option may be mistyped.
      const mistyped = this.args.find((word) => word.startsWith("--"))?.replace(/=.*/s, "");
      if (mistyped !== undefined && mistyped !== "--") {
        reportUnknown(this, mistyped, ["--help", ...longOptions(this)]);
      }
    }
    const [, flag, value] = /^error: unknown option '(--[^=']+)(=.*)?'/s.exec(message) ?? [];
    if (flag === undefined || (value === undefined && this.commands.length === 0)) {
      return super.error(this.describeArgument(message), options);
    }
    const own = ["--help", ...longOptions(this)];
    reportUnknown(this, flag, [...own, ...this.commands.flatMap(longOptions)]);
    const subcommand = this.commands.find((one) => longOptions(one).includes(flag));
    return super.error(
      own.includes(flag) || !subcommand
        ? `error: option '${flag}' takes no value`
        : `error: option '${flag}' must follow its command, for example ${fullName(subcommand)} ${flag}`,
      options,
    );
  }

  /** Commander describes errors of options well, but not those of arguments. */
  private describeArgument(message: string): string {
    const [, missing] = /^error: missing required argument '(.*)'$/.exec(message) ?? [];
    const { argChoices } =
      this.registeredArguments.find((argument) => argument.name() === missing) ?? {};
    return argChoices
      ? `${message}. Allowed choices are ${argChoices.join(", ")}.`
      : message.replace(
          /^error: command-argument value '(.*)' is invalid for argument '(.*?)'\./s,
          "error: '$1' is not a valid <$2>.",
        );
  }
}

function longOptions({ options }: Command): string[] {
  return options.flatMap(({ long }) => long ?? []);
}

function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name();
}

/** Creates the command line without the client commands, so that `serve` starts fast. */
export function createProgram(): Command {
  const program = new LatchkeyCommand("latchkey")
    .description("Credential and session service, and its command-line client.")
    .version(version, "-v, --version", "show the version")
    .helpOption("-h, --help", "show help")
    .configureHelp(helpFormat)
    .configureOutput({
      outputError(text, write) {
        const lines = text
          .trimEnd()
          .replace(/^error: /, "latchkey: ")
          .split("\n");
        write(lines.map((line) => `${wrapForStderr(line)}\n`).join(""));
      },
    })
    .showHelpAfterError("Run with --help for usage.")
    .exitOverride()
    .hook("preAction", (_, command) => refuseEmptyValues(command));
  const demo = program
    .commandsGroup("Get started:")
    .command("demo")
    .summary("show a session from start to end; needs no setup")
    .description("show a session from start to end, with a temporary service that is then removed")
    .action(lazy(async () => (await import("./demo.js")).demoCommand));
  addExample(demo, "latchkey demo");
  addInitCommand(program);
  const serving = program
    .commandsGroup("Run a service:")
    .command("serve")
    .summary("run the service")
    .description(
      "run the service. Each option can also be set by the environment variable in parentheses. " +
        "More settings are variables only: see /docs/reference/settings of the service",
    );
  addExample(
    withSettings(serving, optionalSettings, serve),
    "latchkey serve --port 8080 --data-dir ./data",
    "latchkey serve --tls-cert server.crt --tls-key server.key",
    "latchkey serve --mongodb-uri 'mongodb://db/?replicaSet=rs0'",
  );
  addStoreCommands(program);
  addExample(program, "latchkey demo", "latchkey serve --port 9000", "latchkey apps ls");
  return program.addHelpText(
    "after",
    `${exitCodeHelp()}\n\nRun latchkey COMMAND --help for the options and examples of a command.`,
  );
}

/** An empty value is a mistake, such as an unset shell variable. Ignored, it would select everything. */
function refuseEmptyValues(command: Command): void {
  const options = command.options.filter(
    (option) =>
      command.getOptionValueSource(option.attributeName()) === "cli" &&
      [command.getOptionValue(option.attributeName())].flat().includes(""),
  );
  const argument = command.registeredArguments.find((_, at) => command.processedArgs[at] === "");
  const [empty] = [...options.map(({ long }) => long), ...(argument ? [argument.name()] : [])];
  if (empty !== undefined) {
    throw new CommandError(`${empty} must not be empty.`, "usage");
  }
}

function addInitCommand(program: Command): void {
  const init = program
    .command("init")
    .summary("connect this folder to a service: application and example")
    .description(
      "save a profile, create an application, and show how to check a key in the language of " +
        "this folder",
    )
    .addOption(
      new Option(
        "--profile <name>",
        "profile to use or create (default: the current one, or local)",
      ).argParser(parseProfileName),
    )
    .option("--name <name>", "name of the application (default: the name of this folder)")
    .option("--write", "write the example program to a new file in this folder")
    .action(lazy(async () => (await import("./init.js")).initCommand));
  addExample(
    withNewConnection(init),
    "latchkey init",
    "latchkey init --url https://latchkey.example.com --key-file admin.key --write",
  );
}

/** Runs the service. Loads only the modules that this process needs. */
async function serve(): Promise<void> {
  const settings = readSettings();
  if (settings.gatewayRoutes) {
    const { parseRoutes } = await import("../services/access/gateways/routes.js");
    await parseRoutes(settings.gatewayRoutes);
  }
  if (settings.workers > 1) {
    const { supervise } = await import("../cluster/supervisor.js");
    await supervise(settings);
  } else {
    const { serveStandalone } = await import("../run-service.js");
    await serveStandalone(settings);
  }
}

/** Adds the commands that open the store directly, with the settings of the service. */
function addStoreCommands(program: Command): void {
  const bootstrap = program
    .command("bootstrap")
    .summary("create a tenant and its first management key")
    .description("create a tenant and its first management application, and print its key once")
    .option("--tenant <uuid>", "use this tenant (default: a new one)", parseId)
    .option("--name <name>", "name of the application (default: Bootstrap)");
  withSettings(
    withJson(bootstrap),
    storeSettings,
    lazy(async () => (await import("./bootstrap.js")).bootstrapCommand),
  );
  addExample(bootstrap, "latchkey bootstrap --name 'Platform team' --json");

  const exporting = program
    .command("export")
    .summary("write all records as lines of JSON")
    .description("write all records as lines of JSON, with hashes and without keys")
    .addOption(fileOption("--output <file>", "file to write (default: stdout)"))
    .option("--resume", "continue an interrupted export")
    .option("--no-events", "omit the audit log");
  withSettings(
    withJson(exporting, "print a summary as JSON; requires --output"),
    storeSettings,
    lazy(async () => (await import("./export.js")).exportCommand),
  );
  addExample(exporting, "latchkey export --output latchkey.ndjson");

  const importing = program
    .command("import")
    .summary("add the records of an export to the store")
    .description("add the records of an export to the store; existing records are skipped")
    .addArgument(fileArgument("<file>", "the export, - for stdin"))
    .option("--dry-run", "only report what would change")
    .option("--replace", "overwrite existing records that differ");
  withSettings(
    withJson(importing, "print the summary as JSON"),
    storeSettings,
    lazy(async () => (await import("./import.js")).importCommand),
  );
  addExample(importing, "latchkey import latchkey.ndjson --dry-run");

  const doctor = program
    .command("doctor")
    .summary("check settings, store and machine, and suggest fixes")
    .description("check settings, store and machine, and suggest fixes; changes nothing");
  withSettings(
    withJson(doctor),
    optionalSettings,
    lazy(async () => (await import("./doctor/doctor.js")).doctorCommand),
  );
  addExample(doctor, "latchkey doctor --mongodb-uri 'mongodb://db/?replicaSet=rs0'");
}

function exitCodeHelp(): string {
  const lines = Object.values(exitCodes).map(
    ({ code, description }) => `  ${String(code).padEnd(3)}  ${description.replaceAll("`", "")}`,
  );
  return `\n${helpTitle("Exit codes:")}\n${lines.join("\n")}`;
}
