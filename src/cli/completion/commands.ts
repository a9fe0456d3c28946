import { Argument, type Command } from "commander";
import { example } from "../options.js";
import { askedByShells, shells } from "./completion.js";

export function addCompletionCommands(program: Command): void {
  const completion = program
    .command("completion")
    .description("print a script that lets a shell complete commands, options and their values")
    .addArgument(new Argument("<shell>", "which one").choices(shells))
    .action(async (shell: (typeof shells)[number]) => {
      const { completionScript } = await import("./completion.js");
      process.stdout.write(completionScript(shell));
    });
  example(
    completion,
    'eval "$(latchkey completion bash)"',
    "latchkey completion zsh > ~/.zfunc/_latchkey",
    "latchkey completion fish > ~/.config/fish/completions/latchkey.fish",
  );

  program
    .command(askedByShells, { hidden: true })
    .argument("[words...]")
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) => {
      const { complete } = await import("./completion.js");
      const candidates = await complete(program, words);
      process.stdout.write(candidates.map((line) => `${line}\n`).join(""));
    });
}
