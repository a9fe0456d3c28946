import type { Argument, Command, Option } from "commander";
import { valueKindOf } from "../options.js";
import { readProfiles } from "../profile/profiles.js";

/** What the scripts of shells ask. */
export const askedByShells = "__complete";

/** The shells that there are scripts for. */
export const shells = ["bash", "zsh", "fish"] as const;
/** Stands for: the names of files. */
export const filesHere = ":files";

/**
 * Tells what may stand where the last of the words is being typed. Each
 * candidate is a line: the word and, after a tab, what it means.
 */
export async function complete(program: Command, words: readonly string[]): Promise<string[]> {
  const typed = words.at(-1) ?? "";
  const place = placeAfter(program, words.slice(0, -1));
  const [, name, value] = /^(--[^=]+)=(.*)$/s.exec(typed) ?? [];
  if (name !== undefined && value !== undefined) {
    const option = place.command.options.find((option) => option.long === name);
    const values = option ? await valuesFor(option) : [];
    return beginningWith(
      values.map((text) => `${name}=${text}`),
      typed,
    );
  }
  return beginningWith(await candidatesAt(place, typed), typed);
}

interface Place {
  readonly command: Command;
  /** The option whose value comes next. */
  readonly option?: Option | undefined;
  /** How many arguments the command has got. */
  readonly argumentCount: number;
}

/** Follows the words to the command that they name. */
function placeAfter(program: Command, words: readonly string[]): Place {
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
      const next = command.commands.find((one) => one.name() === word);
      argumentCount = next ? 0 : argumentCount + 1;
      command = next ?? command;
    }
  }
  return { command, option, argumentCount };
}

async function candidatesAt(place: Place, typed: string): Promise<string[]> {
  const { command, option, argumentCount } = place;
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

async function valuesFor(place: Option | Argument): Promise<string[]> {
  switch (valueKindOf(place)) {
    case "file":
      return [filesHere];
    case "profile":
      // A file that cannot be read is told by the command itself.
      return readProfiles().then(
        ({ byName }) => [...byName].map(([name, { url }]) => `${name}\t${url}`),
        () => [],
      );
    default:
      return place.argChoices ?? [];
  }
}

function beginningWith(candidates: readonly string[], typed: string): string[] {
  return candidates.filter((line) => line.startsWith(typed) || line === filesHere);
}

/** The script for a shell. It knows nothing itself: it asks the command line with each Tab. */
export function completionScript(shell: Shell): string {
  return scripts[shell];
}

const bash = `# latchkey completion for bash: eval "$(latchkey completion bash)"
_latchkey() {
  local line words=("\${COMP_WORDS[@]:1:COMP_CWORD}") typed="\${COMP_WORDS[COMP_CWORD]}"
  COMPREPLY=()
  # Bash takes = for a word of its own.
  if [[ $COMP_WORDBREAKS == *=* && $COMP_CWORD -gt 1 ]]; then
    if [[ $typed == "=" ]]; then
      words=("\${COMP_WORDS[@]:1:COMP_CWORD-1}" "") typed=""
    elif [[ \${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then
      words=("\${COMP_WORDS[@]:1:COMP_CWORD-2}" "$typed")
    fi
  fi
  while IFS= read -r line; do
    if [[ $line == "${filesHere}" ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$typed")
    else
      COMPREPLY+=("\${line%%$'\\t'*}")
    fi
  done < <(latchkey ${askedByShells} -- "\${words[@]}" 2>/dev/null)
}
complete -F _latchkey latchkey
`;

const zsh = `#compdef latchkey
_latchkey() {
  local line
  local -a found
  for line in "\${(@f)$(latchkey ${askedByShells} -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    if [[ $line == "${filesHere}" ]]; then
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
  for line in (latchkey ${askedByShells} -- $words 2>/dev/null)
    if test "$line" = "${filesHere}"
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c latchkey -f -a '(__latchkey_complete)'
`;

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };

export type Shell = (typeof shells)[number];
