import { type Command, Option } from "commander";
import { wholeNumber } from "./option-parsers.js";

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
