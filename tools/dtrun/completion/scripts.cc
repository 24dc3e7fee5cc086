#include "tools/dtrun/completion/candidates.h"

namespace dtrun::cli {
namespace {

constexpr char kBash[] = R"SCRIPT(# bash completion for dtrun; load it with: source <(dtrun completion bash)
_dtrun() {
  local rest=$COMP_LINE words=() word before files current stem='' breaks=${COMP_WORDBREAKS//[^=:]}
  # Bash splits words at = and : too, and completes only what is behind the last of them.
  for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
    before=${rest%%"$word"*}
    [[ -n $word ]] || before=${rest%%[![:space:]]*}
    rest=${rest#"$before$word"}
    if [[ ${#words[@]} -eq 0 || $before == *[[:space:]]* ]]; then words+=("$word"); else words[-1]+=$word; fi
  done
  current=${words[-1]}
  [[ -z $breaks ]] || stem=${current%"${current##*[$breaks]}"}
  COMPREPLY=()
  {
    read -r files
    while IFS=$'\t' read -r word _; do
      COMPREPLY+=("${word#"$stem"}")
      [[ $word != *[=.] ]] || compopt -o nospace
    done
  } < <("${words[0]/#\~/$HOME}" completion words "${words[@]:1}" 2>/dev/null)
  word=${current##*=}
  before=${current%"$word"}
  before=${before#"$stem"}
  [[ ${files:-none} == none ]] || compopt -o filenames
  case $files in
    any) mapfile -t words < <(compgen -f -P "$before" -- "$word") ;;
    toml) mapfile -t words < <(compgen -f -X '!*.toml' -P "$before" -- "$word"; compgen -d -P "$before" -- "$word") ;;
    folders) mapfile -t words < <(compgen -d -P "$before" -- "$word") ;;
    runnable)
      words=()
      while IFS= read -r word; do
        [[ ! -x ${word/#\~/$HOME} && $word != *.@(py|toml) ]] || words+=("$word")
      done < <(compgen -f -- "$current")
      ;;
    *) return ;;
  esac
  COMPREPLY+=("${words[@]}")
}
complete -F _dtrun dtrun
)SCRIPT";

constexpr char kZsh[] = R"SCRIPT(#compdef dtrun
# zsh completion for dtrun; load it with: source <(dtrun completion zsh)
_dtrun() {
  local files line word
  local -a lines closed open
  lines=("${(@f)$("${(Q)${words[1]/#\~/$HOME}}" completion words "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  files=$lines[1]
  for line in "${(@)lines[2,-1]}"; do
    word=${line%%$'\t'*}
    if [[ $line == *$'\t'* ]]; then line=${word//:/\\:}:${line#*$'\t'}; else line=${word//:/\\:}; fi
    if [[ $word == *[=.] ]]; then open+=("$line"); else closed+=("$line"); fi
  done
  (( $#closed == 0 )) || _describe -t words dtrun closed
  (( $#open == 0 )) || _describe -t words dtrun open -S ''
  [[ $files == none || $PREFIX != *=* ]] || compset -P '*='
  case $files in
    any) _files ;;
    toml) _files -g '*.toml' ;;
    folders) _files -/ ;;
    runnable) _files -g '*.(py|toml) *(*)' ;;
  esac
}
if [[ $funcstack[1] == _dtrun ]]; then _dtrun "$@"; else compdef _dtrun dtrun; fi
)SCRIPT";

constexpr char kFish[] = R"SCRIPT(# fish completion for dtrun; load it with: dtrun completion fish | source
function __dtrun_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program completion words $words "$current" 2>/dev/null)
    set -l files $lines[1]
    set -e lines[1]
    for line in $lines
        echo -- $line
    end
    set -l path (string replace -r '^.*=' '' -- "$current")
    set -l stem (string match -r '^.*=' -- "$current")
    switch "$files"
        case any
            for found in (__fish_complete_path "$path")
                echo -- "$stem$found"
            end
        case toml
            for found in (__fish_complete_path "$path")
                string match -qr '^[^\t]*(/|\.toml)(\t|$)' -- $found; and echo -- "$stem$found"
            end
        case runnable
            for found in (__fish_complete_path "$current")
                set -l file (string split -f 1 \t -- $found)
                string match -qr '(/|\.py|\.toml)$' -- $file; or test -x (string replace -r '^~' $HOME -- $file); and echo -- $found
            end
        case folders
            for found in (__fish_complete_directories "$path" '')
                echo -- "$stem$found"
            end
    end
end
complete -c dtrun -f -a '(__dtrun_complete)'
)SCRIPT";

constexpr CompletionScript kScripts[] = {
    {"bash", "source <(dtrun completion bash), in ~/.bashrc", kBash},
    {"zsh", "source <(dtrun completion zsh), in ~/.zshrc after compinit", kZsh},
    {"fish", "dtrun completion fish | source, in ~/.config/fish/config.fish", kFish},
};

}  // namespace

std::span<const CompletionScript> CompletionScripts() { return kScripts; }

}  // namespace dtrun::cli
