import { styleText } from "node:util";
import { Argument, Command, type HelpConfiguration, Option } from "commander";
import { isId } from "../lib/uuid-text.js";
import {
  parseHeaderName,
  parseServiceUrl,
  parseTimeout,
  wholeNumberParser,
} from "./option-values.js";

/** The kinds of values that shell completion can list. */
type ValueKind = "file" | "profile";
const valueKinds = new WeakMap<Option | Argument, ValueKind>();

export function valueKindOf(parameter: Option | Argument): ValueKind | undefined {
  return valueKinds.get(parameter);
}

export function fileArgument(name: string, description: string): Argument {
  const argument = new Argument(name, description);
  valueKinds.set(argument, "file");
  return argument;
}

/**
 * Runs a command that lists. It accepts `ls` or `list`, as a group of commands does. With `show`,
 * an id shows one item.
 */
export function withListAction<Flags>(
  command: Command,
  run: (flags: Flags) => Promise<void>,
  show?: (id: string, flags: Flags) => Promise<void>,
): Command {
  return command
    .argument("[ls]")
    .usage(show ? "[id] [options]" : "[options]")
    .action((word: string | undefined, flags: Flags) => {
      if (show && word !== undefined && isId(word)) {
        return show(word, flags);
      }
      if (word !== undefined && !listWords.includes(word)) {
        refuseWord(command, word);
      }
      return run(flags);
    });
}

const listWords: readonly string[] = ["ls", "list"];

/** Whether a word may follow a command that lists, and changes nothing. */
export function isListWord(command: Command, word: string): boolean {
  return command.registeredArguments[0]?.name() === "ls" && listWords.includes(word);
}

/** Suggests an option of the same name, or `ls` if the word is similar. */
function refuseWord(command: Command, word: string): void {
  const option = command.options.find(({ long }) => long === `--${word}`);
  if (option) {
    command.error(`error: unknown command '${word}'\n(Did you mean ${option.long}?)`);
  }
  reportUnknown(command, word, listWords);
}

/**
 * Reports a word as unknown, with commander's suggestion among these options and commands.
 * Returns if the word is one of them.
 */
export function reportUnknown(command: Command, word: string, known: readonly string[]): void {
  const similar = new Command().copyInheritedSettings(command).helpOption(false);
  for (const name of new Set(known)) {
    name.startsWith("-") ? similar.option(name) : similar.command(name);
  }
  similar.parse([word], { from: "user" });
}

export function profileArgument(): Argument {
  const argument = new Argument("<name>", "name of the profile");
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
  const option = new Option("--profile <name>", "profile to use (LATCHKEY_PROFILE)");
  valueKinds.set(option, "profile");
  return option;
}

/** Finds a command of a group by its name or another name of it. */
export function findSubcommand(group: Command, word: string): Command | undefined {
  return group.commands.find((one) => one.name() === word || one.aliases().includes(word));
}

export function withJson(command: Command, description = "print JSON"): Command {
  return command.option("--json", description);
}

/** The options of every command that calls the service. */
export function withConnection(command: Command): Command {
  return withJson(command)
    .optionsGroup("Connection:")
    .addOption(
      new Option("--url <url>", "URL of the service (LATCHKEY_URL)").argParser(parseServiceUrl),
    )
    .addOption(profileOption())
    .addOption(fileOption("--key-file <file>", "file with your key, - for stdin (LATCHKEY_KEY)"))
    .addOption(
      new Option(
        "--key-header <name>",
        "header that carries the key (LATCHKEY_KEY_HEADER)",
      ).argParser(parseHeaderName),
    )
    .addOption(timeoutOption());
}

export const defaultUrl = "http://localhost:8080";

/** The options of {@link withNewConnection}. */
export interface NewConnectionFlags {
  readonly url?: string;
  readonly keyFile?: string;
  readonly keyHeader?: string;
  /** Milliseconds. */
  readonly timeout: number;
}

/** The options of a command that saves a connection. */
export function withNewConnection(command: Command): Command {
  return withJson(command)
    .optionsGroup("Connection:")
    .addOption(
      new Option("--url <url>", `URL of the service (default: ${defaultUrl})`).argParser(
        parseServiceUrl,
      ),
    )
    .addOption(
      fileOption("--key-file <file>", "file with the key, - for stdin (default: prompt or stdin)"),
    )
    .addOption(
      new Option("--key-header <name>", "header that carries the key").argParser(parseHeaderName),
    )
    .addOption(timeoutOption());
}

function timeoutOption(): Option {
  return new Option("--timeout <time>", "timeout of each call, for example 30s")
    .argParser(parseTimeout)
    .default(15_000, "15s");
}

/** The names under which commander returns the options of {@link withConnection}. */
export function connectionFlags(): string[] {
  return withConnection(new Command()).options.map((option) => option.attributeName());
}

/** An option with a fixed set of values. */
export function choice(flags: string, description: string, values: readonly string[]): Option {
  return new Option(flags, description).choices(values);
}

/** Collects the values of an option that is given several times. */
export function repeatable(option: Option): Option {
  const { parseArg } = option;
  return option.argParser<unknown[]>((text, before = []) => [
    ...before,
    parseArg ? parseArg(text, undefined) : text,
  ]);
}

export function yesOption(): Option {
  return new Option("-y, --yes", "skip the confirmation prompt");
}

/** An option that clears a value, so it conflicts with the option that sets it. */
export function clearOption(flags: string, description: string, setter: string): Option {
  const option = new Option(flags, description).conflicts(setter);
  // Otherwise --no-… would have the same value as the setter, and could not conflict with it.
  option.negate = false;
  return option;
}

/** Commander removes the style where colors are off. */
export function helpTitle(text: string): string {
  return styleText("bold", text, { validateStream: false });
}

/** One line per command, and choices as part of the sentence: `sort order: newest, name`. */
export const helpFormat: HelpConfiguration = {
  sortSubcommands: false,
  minWidthToWrap: 20,
  styleTitle: helpTitle,
  subcommandTerm: (command) => [command.name(), ...command.aliases()].join(", "),
  optionDescription: (option) =>
    describe(option, option.defaultValueDescription) + (option.mandatory ? " (required)" : ""),
  argumentDescription: (argument) => describe(argument),
};

function describe({ description, argChoices }: Option | Argument, defaultValue?: string): string {
  const [, text, facts = ""] = /^(.*?)( \([^()]*\))?$/.exec(description) ?? [];
  const choices = argChoices ? `: ${argChoices.join(", ")}` : "";
  return text + choices + facts + (defaultValue === undefined ? "" : ` (default: ${defaultValue})`);
}

export function addExample(command: Command, ...lines: readonly string[]): Command {
  const title = helpTitle(lines.length === 1 ? "Example:" : "Examples:");
  return command.addHelpText("after", `\n${title}\n${lines.map((line) => `  ${line}`).join("\n")}`);
}

/** The options that set the length of a list. */
export function withLimit(command: Command): Command {
  return command
    .addOption(
      new Option("--limit <count>", "maximum number of items")
        .argParser(wholeNumberParser("items", 1, 100_000, 50))
        .default(50, "50"),
    )
    .addOption(new Option("--all", "list every item").conflicts("limit"));
}

/** Loads the module of an action only when its command runs. */
export function lazy<Args extends unknown[]>(
  load: () => Promise<(...args: Args) => Promise<void>>,
): (...args: Args) => Promise<void> {
  return async (...args) => (await load())(...args);
}
