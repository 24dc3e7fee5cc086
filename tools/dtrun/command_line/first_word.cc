#include "tools/dtrun/command_line/first_word.h"

#include <algorithm>
#include <string_view>

#include "core/base/text.h"

namespace dtrun::cli {
namespace {

struct Known {
  std::string_view files;  // each surrounded by spaces
  OtherLauncher launcher;
};

const OtherLauncher kHorovodrun{
    .setting = "job.dialects=horovod",
    .otherwise = "without Horovod, in place of that --set: python3 -m dtrun.horovod in front of the script",
    .family = "horovodrun"};
const OtherLauncher kDeepspeed{.family = "deepspeed", .each_gpu = true};
const OtherLauncher kAccelerate{.family = "accelerate", .each_gpu = true};

const std::vector<Known>& Launchers() {
  static const std::vector<Known> known{
      {" mpirun mpiexec mpiexec.hydra mpirun.openmpi mpiexec.openmpi mpirun.mpich mpiexec.mpich orterun "
       "prterun ",
       {.mpi = true, .family = "mpirun"}},
      {" srun ",
       {.setting = "cluster.from=slurm",
        .otherwise =
            "outside of an allocation of salloc or sbatch, in place of that --set: --hosts node0,node1",
        .family = "srun"}},
      {" horovodrun ", kHorovodrun},
      {" deepspeed ", kDeepspeed},
      {" torchrun ", {.torchrun = true}},
  };
  return known;
}

// Launchers that run as `python3 -m MODULE`.
const std::vector<Known>& Modules() {
  static const std::vector<Known> known{
      {" torch.distributed.run ", {.torchrun = true}},
      {" torch.distributed.launch ", {.torchrun = true, .old = true}},
      {" accelerate.commands.launch ", kAccelerate},
      {" deepspeed deepspeed.launcher.runner ", kDeepspeed},
      {" horovod.runner horovod.runner.launch horovod.run horovod.run.run ", kHorovodrun},
  };
  return known;
}

// One of these precedes the word launch after `python3 -m`.
constexpr std::string_view kAccelerateModules = " accelerate accelerate.commands.accelerate_cli ";

std::optional<OtherLauncher> Find(const std::vector<Known>& known, const std::string& name) {
  const auto found = std::ranges::find_if(
      known, [&](const Known& one) { return one.files.find(' ' + name + ' ') != std::string_view::npos; });
  if (found == known.end()) return std::nullopt;
  OtherLauncher launcher = found->launcher;
  launcher.name = name;
  return launcher;
}

struct Verb {
  std::string_view words;
  std::string_view advice;
  bool beats_programs = false;
  bool superfluous = false;
};

constexpr Verb kVerbs[] = {
    {" version ", "write dtrun --version"},
    {" check validate lint ", "to check a config, write dtrun config check JOB.toml"},
    {" init ", "did you mean dtrun config init, which writes a config with comments?", true},
    {" new create ", "dtrun config init writes a config with comments"},
    {" status logs log show history ",
     "the run folder has a job's output and state (logs.dir); dtrun explain latest reports on the last job"},
    {" ps top ",
     "a job runs as long as its dtrun does; dtrun explain latest reports on the last job, and its folder has "
     "the output of every rank",
     true},
    {" kill ", "to end a job, type Ctrl-C where its dtrun runs, or send that process SIGTERM", true},
    {" stop cancel abort terminate ",
     "to end a job, type Ctrl-C where its dtrun runs, or send that process SIGTERM"},
    {" start launch submit ", "leave it out: dtrun -n 4 train.py", false, true},
    {" options ", "write dtrun config list"},
    {" list ls ", "dtrun config list has every option, dtrun plugins every plugin"},
};

}  // namespace

std::optional<OtherLauncher> LauncherOf(const std::vector<std::string>& command) {
  if (command.empty()) return std::nullopt;
  const std::string name(FileName(command[0]));
  if (name == "accelerate" && command.size() > 1 && command[1] == "launch") {
    OtherLauncher launcher = kAccelerate;
    launcher.name = "accelerate launch";
    launcher.words = 2;
    return launcher;
  }
  if (!name.starts_with("python")) return Find(Launchers(), name);
  std::size_t at = 1;  // skips -u and the like
  while (at < command.size() && command[at] != "-m" && command[at].starts_with('-'))
    at += command[at] == "-W" || command[at] == "-X" ? 2 : 1;
  if (at + 1 >= command.size() || command[at] != "-m") return std::nullopt;
  const std::string& module = command[at + 1];
  if (kAccelerateModules.find(' ' + module + ' ') != std::string_view::npos && at + 2 < command.size() &&
      command[at + 2] == "launch") {
    OtherLauncher launcher = kAccelerate;
    launcher.name = "accelerate launch";
    launcher.words = at + 3;
    return launcher;
  }
  auto launcher = Find(Modules(), module);
  if (launcher) launcher->words = at + 2;
  return launcher;
}

std::optional<VerbAdvice> AdviceFor(const std::string& word) {
  for (const Verb& verb : kVerbs) {
    if (verb.words.find(' ' + word + ' ') != std::string_view::npos) {
      return VerbAdvice{std::string(verb.advice), verb.beats_programs, verb.superfluous};
    }
  }
  return std::nullopt;
}

std::string Quoted(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? "'\\''" : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace dtrun::cli
