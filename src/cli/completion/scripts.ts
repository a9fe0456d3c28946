import { askedByShells } from "../completion-commands.js";
import { filesHere } from "./complete.js";
import type { Shell } from "./shells.js";

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
