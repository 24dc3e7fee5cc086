// `dtrun completion bash`: load it with  source <(dtrun completion bash)
#include <fmt/format.h>

#include <cstdio>

#include "core/base/standard_output.h"
#include "tools/dtrun/verbs.h"

namespace dtrun::cli {
namespace {

constexpr char kScript[] = R"SCRIPT(# bash completion for dtrun
_dtrun() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} verb='' word
  # Bash splits words at '='; nothing is offered behind one.
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in
      --) return ;;
      run|plan|env|config|plugins|bench|completion|doctor|explain|help) verb=${verb:-$word} ;;
      torchrun) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    esac
  done
  case $previous in
    --config|-c) mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$current"; compgen -d -- "$current"); return ;;
    --hostfile) mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    --plugin-dir) mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    --set) mapfile -t COMPREPLY < <(compgen -S = -W "$(dtrun completion keys 2>/dev/null)" -- "$current")
           compopt -o nospace; return ;;
    bench) mapfile -t COMPREPLY < <(compgen -W "allreduce reduce broadcast allgather reduce_scatter alltoall sendrecv
             barrier" -- "$current"); return ;;
    --buffers) mapfile -t COMPREPLY < <(compgen -W "private registered both" -- "$current"); return ;;
    --local) mapfile -t COMPREPLY < <(compgen -W "shm none shm,none" -- "$current"); return ;;
    --peers) mapfile -t COMPREPLY < <(compgen -W "all none raw-gloo raw-mpi raw-ucx torch-gloo" -- "$current"); return ;;
    --backend) mapfile -t COMPREPLY < <(compgen -W "$(dtrun plugins list --names 2>/dev/null)" -- "$current"); return ;;
    --json|--plot) [[ $verb != bench ]] || { mapfile -t COMPREPLY < <(compgen -f -- "$current"); return; } ;;
    --as) mapfile -t COMPREPLY < <(compgen -W "$(dtrun env --list 2>/dev/null | cut -d' ' -f1)" -- "$current"); return ;;
    --kind) mapfile -t COMPREPLY < <(compgen -W "backend launcher" -- "$current"); return ;;
    explain) if [[ $verb == config ]]; then
               mapfile -t COMPREPLY < <(compgen -W "$(dtrun completion keys 2>/dev/null)" -- "$current"); return
             fi ;;
    check) mapfile -t COMPREPLY < <(compgen -f -X '!*.toml' -- "$current"; compgen -d -- "$current"); return ;;
    describe) mapfile -t COMPREPLY < <(compgen -W "$(dtrun plugins list --names 2>/dev/null)" -- "$current"); return ;;
    config) mapfile -t COMPREPLY < <(compgen -W "check explain list" -- "$current"); return ;;
    plugins) mapfile -t COMPREPLY < <(compgen -W "list describe" -- "$current"); return ;;
    completion) mapfile -t COMPREPLY < <(compgen -W "bash" -- "$current"); return ;;
  esac
  local words="-n --processes-per-host --hosts --hostfile --host-index --config --set --plugin-dir --help"
  local verbs="run plan env doctor explain config plugins bench torchrun completion" configs=''
  case $verb in
    '') words="$verbs help --version --quiet --verbose $words" configs=1 ;;
    help) words=$verbs ;;
    run) words="--quiet --verbose $words" configs=1 ;;
    plan|doctor) words="--json $words" configs=1 ;;
    config) words="--json $words" ;;
    explain) mapfile -t COMPREPLY < <(compgen -W "latest --failures --json --help" -- "$current"; compgen -f -- "$current")
             return ;;
    env) words="--rank --as --list --json --shell $words" ;;
    bench) words="--np --sizes --factor --dtype --backend --local --buffers --peers --rounds --warmup --seconds --wrap
             --mpirun --json --plot --set --plugin-dir --help" ;;
    plugins) words="--json --kind --set --plugin-dir --help" ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current"
                           [[ -z $configs ]] || compgen -f -X '!*.toml' -- "$current")
}
complete -F _dtrun dtrun
)SCRIPT";

}  // namespace

int BashCompletion() {
  WriteOutput(kScript);
  return 0;
}

int CompleteKeys() {
  for (const options::Spec& spec : config::CoreSchema()) PrintOutput("{}\n", spec.key);
  return 0;
}

}  // namespace dtrun::cli
