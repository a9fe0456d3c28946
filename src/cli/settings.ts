import { type Command, Option } from "commander";
import {
  type Definition,
  definitions,
  type SettingName,
  type SettingOption,
} from "../config/definitions.js";
import { ConfigError } from "../config/settings.js";
import { CommandError } from "./errors.js";
import { fileOption } from "./options.js";

/** The settings that can be set by an option: `--data-dir` sets DATA_DIR. */
export const optionalSettings = (Object.keys(definitions) as SettingName[]).filter(
  (name) => "option" in definitions[name],
);

/** The settings of the commands that open the store without serving it. */
export const storeSettings = ["DATA_DIR", "MONGODB_URI", "MONGODB_DATABASE"] as const;

/**
 * Adds options for settings to a command, and its action. The options override the environment
 * variables, and the errors of the action name the options that were used.
 */
export function withSettings<Args extends unknown[]>(
  command: Command,
  names: readonly SettingName[],
  run: (...args: Args) => Promise<void>,
): Command {
  for (const name of names) {
    command.addOption(settingOption(name));
  }
  return command.action(async (...args) => {
    for (const [name, option] of usedOptions(command)) {
      // Workers inherit the environment.
      process.env[name] = command.getOptionValue(option.attributeName());
    }
    try {
      await run(...(args as Args));
    } catch (error) {
      throw nameUsedOptions(error, command);
    }
  });
}

export function optionOfSetting(name: string): string {
  return `--${name.toLowerCase().replaceAll("_", "-")}`;
}

function settingOption(name: SettingName): Option {
  const { parse, default: defaultValue, option }: Definition = definitions[name];
  const { group, value, description } = option as SettingOption;
  const facts = defaultValue === undefined ? name : `${name}, default: ${defaultValue}`;
  const flags = `${optionOfSetting(name)} <${value}>`;
  const isPath = value === "file" || value === "folder";
  const created = (isPath ? fileOption : createOption)(flags, `${description} (${facts})`);
  return (parse.choices ? created.choices(parse.choices) : created).helpGroup(group);
}

const createOption = (flags: string, description: string) => new Option(flags, description);

/** The options of settings that were used, by the names of their variables. */
function usedOptions(command: Command): Map<string, Option> {
  const names = new Map(optionalSettings.map((name) => [optionOfSetting(name), name]));
  return new Map(
    command.options.flatMap((option) => {
      const name = names.get(option.long ?? "");
      const isUsed = command.getOptionValueSource(option.attributeName()) === "cli";
      return name && isUsed ? [[name, option]] : [];
    }),
  );
}

/** Returns a function that replaces the variables in a text by the options that were used instead. */
export function createOptionNamer(command: Command): (text: string) => string {
  const used = usedOptions(command);
  return (text) =>
    text.replaceAll(
      /(?<![\w/.-])[A-Z][A-Z0-9_]+(?![\w/-])/g,
      (name) => used.get(name)?.long ?? name,
    );
}

function nameUsedOptions(error: unknown, command: Command): unknown {
  if (!(error instanceof Error)) {
    return error;
  }
  const message = createOptionNamer(command)(error.message);
  if (message === error.message) {
    return error;
  }
  const { exit = error instanceof ConfigError ? "usage" : "failed", hint } =
    error as Partial<CommandError>;
  return new CommandError(message, exit, hint);
}
