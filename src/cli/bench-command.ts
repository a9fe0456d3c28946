import { type Command, Option } from "commander";
import { benchMethods } from "./bench/methods.js";
import { choice, example, withConnection, yesOption } from "./command-options.js";
import { lazily } from "./lazily.js";
import { wholeNumber } from "./option-parsers.js";

export function addBenchCommand(program: Command): void {
  const bench = program
    .command("bench")
    .description("call a service for a few seconds, and tell how quick it is from here")
    .addOption(choice("--method <method>", "what to call", benchMethods).default(benchMethods[0]))
    .addOption(
      new Option("--seconds <count>", "for how long, at most 60")
        .argParser(wholeNumber("seconds", 1, 60, 5))
        .default(5),
    )
    .addOption(
      new Option(
        "--connections <count>",
        "over how many connections, each with one call at a time, at most 64",
      )
        .argParser(wholeNumber("connections", 1, 64, 8))
        .default(8),
    )
    .addOption(yesOption())
    .action(lazily(async () => (await import("./bench/bench.js")).benchCommand));
  example(withConnection(bench), "latchkey bench --method check --seconds 10 --connections 16");
}
