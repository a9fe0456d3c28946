import { Argument, type Command, Option } from "commander";
import { header, serviceUrl, timeLimit } from "./option-parsers.js";

/** What is named by an option or argument, where completion can tell what there is. */
export type ValueKind = "file" | "profile";
const valueKinds = new WeakMap<Option | Argument, ValueKind>();

export function valueKindOf(place: Option | Argument): ValueKind | undefined {
  return valueKinds.get(place);
}

export function fileArgument(name: string, description: string): Argument {
  const argument = new Argument(name, description);
  valueKinds.set(argument, "file");
  return argument;
}

export function profileArgument(): Argument {
  const argument = new Argument("<name>", "which one");
  valueKinds.set(argument, "profile");
  return argument;
}

/** An option that names a file. */
export function fileOption(flags: string, description: string): Option {
  const option = new Option(flags, description);
  valueKinds.set(option, "file");
  return option;
}

function profileOption(): Option {
  const option = new Option("--profile <name>", "the profile to use (LATCHKEY_PROFILE)");
  valueKinds.set(option, "profile");
  return option;
}

export function withJson(command: Command): Command {
  return command.option("--json", "show JSON, as REST has it");
}

/** The options of every command that calls a service. */
export function withConnection(command: Command): Command {
  return withJson(command)
    .optionsGroup("Connection:")
    .addOption(
      new Option("--url <url>", "where the service is (LATCHKEY_URL)").argParser(serviceUrl),
    )
    .addOption(profileOption())
    .addOption(
      fileOption(
        "--key-file <file>",
        "the file with the key to call with, - for stdin (LATCHKEY_KEY)",
      ),
    )
    .addOption(
      new Option(
        "--key-header <name>",
        "the header that carries the key (LATCHKEY_KEY_HEADER)",
      ).argParser(header),
    )
    .addOption(
      new Option("--timeout <time>", "how long an answer may take")
        .argParser(timeLimit)
        .default(15_000, "15s"),
    );
}

/** An option that takes one of the words that the contract knows. */
export function choice(flags: string, description: string, values: readonly string[]): Option {
  return new Option(flags, description).choices(values);
}

export function yesOption(): Option {
  return new Option("-y, --yes", "do not ask");
}

export function example(command: Command, ...lines: readonly string[]): Command {
  const title = lines.length === 1 ? "Example:" : "Examples:";
  return command.addHelpText("after", `\n${title}\n${lines.map((line) => `  ${line}`).join("\n")}`);
}
