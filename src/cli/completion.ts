import { Argument, type Command, type Option } from "commander";
import { addExample, findSubcommand, valueKindOf } from "./options.js";
import { readProfiles } from "./profiles-file.js";

export const shells = ["bash", "zsh", "fish"] as const;
type Shell = (typeof shells)[number];

/** The hidden command that the completion scripts call. */
const completionCommand = "__complete";

/** The candidate that makes a script list files. */
export const fileCandidates = ":files";

export function addCompletionCommands(program: Command): void {
  const completion = program
    .command("completion")
    .summary("print a script for completion in your shell")
    .description("print a shell script that completes commands, options and values")
    .addArgument(new Argument("<shell>", "shell to print it for").choices(shells))
    .action((shell: Shell) => {
      process.stdout.write(completionScript(shell));
    });
  addExample(
    completion,
    'eval "$(latchkey completion bash)"',
    "latchkey completion zsh > ~/.zfunc/_latchkey",
    "latchkey completion fish > ~/.config/fish/completions/latchkey.fish",
  );

  program
    .command(completionCommand, { hidden: true })
    .argument("[words...]")
    .allowUnknownOption()
    .helpOption(false)
    .action(async (words: string[]) => {
      const candidates = await complete(program, words);
      process.stdout.write(candidates.map((line) => `${line}\n`).join(""));
    });
}

/**
 * Returns the candidates for the last word, which may be incomplete. Each is a
 * word and, after a tab, its description.
 */
export async function complete(program: Command, words: readonly string[]): Promise<string[]> {
  const [first, ...others] = words;
  if (first === "help" && others.length > 0) {
    return complete(program, others);
  }
  const typed = words.at(-1) ?? "";
  const cursor = findCursor(program, words.slice(0, -1));
  const [, name, value] = /^(--[^=]+)=(.*)$/s.exec(typed) ?? [];
  if (name !== undefined && value !== undefined) {
    const option = cursor.command.options.find((option) => option.long === name);
    const values = option ? await valuesFor(option) : [];
    return withPrefix(
      values.map((text) => `${name}=${text}`),
      typed,
    );
  }
  return withPrefix(await candidatesAt(cursor, typed), typed);
}

interface Cursor {
  readonly command: Command;
  /** The option whose value is completed. */
  readonly option?: Option | undefined;
  /** The number of arguments before the cursor. */
  readonly argumentCount: number;
}

/** Finds the command and option that the words lead to. */
function findCursor(program: Command, words: readonly string[]): Cursor {
  let command = program;
  let option: Option | undefined;
  let argumentCount = 0;
  for (const word of words) {
    if (option) {
      option = undefined;
    } else if (word.startsWith("-")) {
      const found = command.options.find(({ long, short }) => word === long || word === short);
      option = found?.required || found?.optional ? found : undefined;
    } else {
      const next = findSubcommand(command, word);
      argumentCount = next ? 0 : argumentCount + 1;
      command = next ?? command;
    }
  }
  return { command, option, argumentCount };
}

async function candidatesAt(cursor: Cursor, typed: string): Promise<string[]> {
  const { command, option, argumentCount } = cursor;
  if (option) {
    return valuesFor(option);
  }
  if (typed.startsWith("-")) {
    const help = command.createHelp();
    return help
      .visibleOptions(command)
      .flatMap(({ long, description }) => (long ? [`${long}\t${description}`] : []));
  }
  const argument = command.registeredArguments[argumentCount];
  const commands = command
    .createHelp()
    .visibleCommands(command)
    .map((one) => `${one.name()}\t${one.description()}`);
  return [...commands, ...(argument ? await valuesFor(argument) : [])];
}

async function valuesFor(parameter: Option | Argument): Promise<string[]> {
  switch (valueKindOf(parameter)) {
    case "file":
      return [fileCandidates];
    case "profile":
      // The command itself reports an unreadable file.
      return readProfiles().then(
        ({ byName }) => [...byName].map(([name, { url }]) => `${name}\t${url}`),
        () => [],
      );
    default:
      return parameter.argChoices ?? [];
  }
}

function withPrefix(candidates: readonly string[], typed: string): string[] {
  return candidates.filter((line) => line.startsWith(typed) || line === fileCandidates);
}

/** The completion script of a shell. It calls the hidden command for every Tab. */
export function completionScript(shell: Shell): string {
  return scripts[shell];
}

const bash = `# latchkey completion for bash: eval "$(latchkey completion bash)"
_latchkey() {
  local line words=("\${COMP_WORDS[@]:1:COMP_CWORD}") typed="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  # Bash splits words at =.
  if [[ $COMP_WORDBREAKS == *=* && $COMP_CWORD -gt 1 ]]; then
    if [[ $typed == "=" ]]; then
      words=("\${COMP_WORDS[@]:1:COMP_CWORD-1}" "") typed=""
    elif [[ \${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then
      words=("\${COMP_WORDS[@]:1:COMP_CWORD-2}" "$typed")
    fi
  fi
  while IFS= read -r line; do
    if [[ $line == "${fileCandidates}" ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$typed")
    else
      COMPREPLY+=("\${line%%$'\\t'*}")
    fi
  done < <(latchkey ${completionCommand} -- "\${words[@]}" 2>/dev/null)
}
complete -F _latchkey latchkey
`;

const zsh = `#compdef latchkey
_latchkey() {
  local line
  local -a found
  for line in "\${(@f)$(latchkey ${completionCommand} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == "${fileCandidates}" ]]; then
      _files
    elif [[ -n $line ]]; then
      local word="\${line%%$'\\t'*}" meaning="\${line#*$'\\t'}"
      found+=("\${word//:/\\\\:}:$meaning")
    fi
  done
  (( \${#found} )) && _describe latchkey found
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _latchkey "$@"
else
  compdef _latchkey latchkey
fi
`;

const fish = `# latchkey completion for fish
function __latchkey_complete
  set -l words (commandline -opc)[2..] (commandline -ct)
  for line in (latchkey ${completionCommand} -- $words 2>/dev/null)
    if test "$line" = "${fileCandidates}"
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c latchkey -f -a '(__latchkey_complete)'
`;

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
