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

/** Adds options for settings to a command. They win over the environment variables. */
export function withSettings<Args extends unknown[]>(
  command: Command,
  names: readonly SettingName[],
  run: (...args: Args) => Promise<void>,
): Command {
  const options = new Map(names.map((name) => [name, settingOption(name)]));
  for (const option of options.values()) {
    command.addOption(option);
  }
  return command.action(async (...args) => {
    const used = new Map([...options].filter(([, option]) => isUsed(command, option)));
    for (const [name, option] of used) {
      // Workers inherit the environment.
      process.env[name] = requireValue(command, option);
    }
    try {
      await run(...(args as Args));
    } catch (error) {
      throw nameOptions(error, used);
    }
  });
}

export function optionFor(name: string): string {
  return `--${name.toLowerCase().replaceAll("_", "-")}`;
}

function settingOption(name: SettingName): Option {
  const { parse, default: usual, option }: Definition = definitions[name];
  const { group, value, description } = option as SettingOption;
  const facts = usual === undefined ? name : `${name}, default: ${usual}`;
  const flags = `${optionFor(name)} <${value}>`;
  const isPath = value === "file" || value === "folder";
  const created = (isPath ? fileOption : createOption)(flags, `${description} (${facts})`);
  return (parse.choices ? created.choices(parse.choices) : created).helpGroup(group);
}

const createOption = (flags: string, description: string) => new Option(flags, description);

function isUsed(command: Command, option: Option): boolean {
  return command.getOptionValueSource(option.attributeName()) === "cli";
}

/** An empty variable counts as unset. An empty option is a mistake, such as an unset shell variable. */
function requireValue(command: Command, option: Option): string {
  const value: string = command.getOptionValue(option.attributeName());
  if (value === "") {
    throw new CommandError(`${option.long} must not be empty.`, "usage");
  }
  return value;
}

/** Names the option that was used instead of the variable. */
function nameOptions(error: unknown, used: ReadonlyMap<string, Option>): unknown {
  if (!(error instanceof Error) || used.size === 0) {
    return error;
  }
  const message = error.message.replaceAll(
    /(?<![\w/.-])[A-Z][A-Z0-9_]+(?![\w/-])/g,
    (name) => used.get(name)?.long ?? name,
  );
  const isUsage = error instanceof ConfigError && message !== error.message;
  const { exit = isUsage ? "usage" : "failed", hint } = error as Partial<CommandError>;
  return new CommandError(message, exit, hint);
}
