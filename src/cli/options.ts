import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { count, delay, headerName, lifetime, type Parser } from "../config/parsers.js";
import { isId } from "../lib/uuid.js";

/** What is named by an option or argument, where completion can tell what there is. */
type ValueKind = "file" | "profile";
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

/** Lets an option be read as a setting is. */
function asOption<T>(parse: Parser<T>): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidArgumentError(`It ${(error as Error).message}.`);
    }
  };
}

export const duration = asOption(lifetime);
export const timeLimit = asOption(delay);
export const header = asOption(headerName);

export const wholeNumber = (noun: string, least: number, most: number, example: number) =>
  asOption(count(noun, least, most, example));

export const id = asOption((text) => {
  if (!isId(text)) {
    throw new Error("must be a UUID");
  }
  return text;
});

export const serviceUrl = asOption((text) => {
  const { protocol, search, hash, username } = parseUrl(text);
  if (!/^https?:$/.test(protocol) || search || hash || username) {
    throw new Error("must be an address such as https://latchkey.example.com");
  }
  return text.replace(/\/+$/, "");
});

export const profileName = asOption((text) => {
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(text)) {
    throw new Error("must be a name of letters, digits, ., _ and -");
  }
  return text;
});

function parseUrl(text: string): Partial<URL> & { readonly protocol: string } {
  return URL.canParse(text) ? new URL(text) : { protocol: "" };
}

/** A moment in RFC 3339, or so far ahead. */
export const momentAhead = momentFrom((now, distance) => now + distance);
/** A moment in RFC 3339, or so long ago. */
export const momentAgo = momentFrom((now, distance) => now - distance);

const moment = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

function momentFrom(move: (now: number, distance: number) => number): (text: string) => Date {
  return asOption((text) => {
    const date = new Date(moment.test(text) ? text : move(Date.now(), distanceIn(text)));
    if (Number.isNaN(date.getTime())) {
      throw new Error("must be a moment such as 2030-01-31T12:00:00Z, or a distance such as 30d");
    }
    return date;
  });
}

function distanceIn(text: string): number {
  try {
    return lifetime(text);
  } catch {
    return Number.NaN;
  }
}

/** Gathers what an option says each time that it is given. */
export function gather(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

/** How much of a list to show. */
export function withLimit(command: Command): Command {
  return command
    .addOption(
      new Option("--limit <count>", "how many to show at most")
        .argParser(wholeNumber("items", 1, 100_000, 50))
        .default(50),
    )
    .addOption(new Option("--all", "show all of them").conflicts("limit"));
}

/** What a command does, loaded when it is run: completion and help need none of it. */
export function lazily<Args extends unknown[]>(
  load: () => Promise<(...args: Args) => Promise<void>>,
): (...args: Args) => Promise<void> {
  return async (...args) => (await load())(...args);
}
