#include "tools/dtrun/command_line/first_word.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "core/base/text.h"

namespace dtrun::cli {
namespace {

struct Known {
  std::string_view programs, modules;  // run as `python3 -m MODULE`; each surrounded by spaces
  OtherLauncher launcher;
};

const OtherLauncher kAccelerate{.name = "accelerate launch", .family = "accelerate", .each_gpu = true};

const Known kLaunchers[] = {
    {" mpirun mpiexec mpiexec.hydra mpirun.openmpi mpiexec.openmpi mpirun.mpich mpiexec.mpich orterun "
     "prterun ",
     "",
     {.mpi = true, .family = "mpirun"}},
    {" srun ",
     "",
     {.setting = "cluster.from=slurm",
      .otherwise =
          "outside of an allocation of salloc or sbatch, in place of that --set: --hosts node0,node1",
      .family = "srun"}},
    {" horovodrun ",
     " horovod.runner horovod.runner.launch horovod.run horovod.run.run ",
     {.setting = "job.dialects=horovod",
      .otherwise = "without Horovod, in place of that --set: python3 -m dtrun.horovod in front of the script",
      .family = "horovodrun"}},
    {" deepspeed ", " deepspeed deepspeed.launcher.runner ", {.family = "deepspeed", .each_gpu = true}},
    {" torchrun ", " torch.distributed.run ", {.torchrun = true}},
    {"", " torch.distributed.launch ", {.torchrun = true, .old = true}},
    {"", " accelerate.commands.launch ", kAccelerate},
};

// One of these precedes the word launch after `python3 -m`.
constexpr std::string_view kAccelerateModules = " accelerate accelerate.commands.accelerate_cli ";

std::optional<OtherLauncher> Find(std::string_view Known::*files, const std::string& name,
                                  std::size_t words) {
  const auto found = std::ranges::find_if(kLaunchers, [&](const Known& one) {
    return (one.*files).find(' ' + name + ' ') != std::string_view::npos;
  });
  if (found == std::end(kLaunchers)) return std::nullopt;
  OtherLauncher launcher = found->launcher;
  launcher.name = name;
  launcher.words = words;
  return launcher;
}

constexpr VerbAdvice kVerbs[] = {
    {" version ", "write dtrun --version"},
    {" check validate lint ", "to check a config, write dtrun config check JOB.toml"},
    {" init ", "dtrun config init writes a config with comments", true},
    {" new create ", "dtrun config init writes a config with comments"},
    {" status log show history ",
     "dtrun ps lists jobs and their run folders, which have the output; dtrun explain latest reports on the "
     "last "
     "job"},
    {" kill ", "dtrun stop JOB ends a job", true},
    {" cancel abort terminate ", "dtrun stop JOB ends a job"},
    {" attach py-spy bt where ", "dtrun stacks JOB shows where the ranks of a running job are"},
    {" start launch submit ", "leave it out: dtrun -n 4 train.py", false, true},
    {" options ", "write dtrun config list"},
    {" list ls ", "dtrun config list has every option, dtrun plugins every plugin"},
};

struct Synonyms {
  std::string_view words;  // each surrounded by spaces
  std::string_view verb;
};

constexpr Synonyms kSynonyms[] = {
    {" show print dump view ls options ", "list"},
    {" get describe info ", "explain"},
    {" info show ", "describe"},
    {" validate lint verify test ", "check"},
    {" new create generate template ", "init"},
};

}  // namespace

std::optional<OtherLauncher> LauncherOf(const Words& command) {
  if (command.empty()) return std::nullopt;
  const auto word = [&](std::size_t at) { return at < command.size() ? std::string_view(command[at]) : ""; };
  const std::string name(FileName(command[0]));
  std::size_t launch = name == "accelerate" ? 1 : 0;  // where its word launch would be
  std::size_t module = 0;
  if (name.starts_with("python")) {
    std::size_t at = 1;  // skips -u and the like
    while (word(at) != "-m" && word(at).starts_with('-')) at += word(at) == "-W" || word(at) == "-X" ? 2 : 1;
    if (word(at) != "-m" || word(at + 1).empty()) return std::nullopt;
    module = at + 1;
    if (kAccelerateModules.find(fmt::format(" {} ", word(module))) != std::string_view::npos)
      launch = module + 1;
  }
  if (launch != 0 && word(launch) == "launch") {
    OtherLauncher launcher = kAccelerate;
    launcher.words = launch + 1;
    return launcher;
  }
  return module == 0 ? Find(&Known::programs, name, 1) : Find(&Known::modules, command[module], module + 1);
}

const VerbAdvice* AdviceFor(const std::string& word) {
  const auto found = std::ranges::find_if(kVerbs, [&](const VerbAdvice& verb) {
    return verb.words.find(' ' + word + ' ') != std::string_view::npos;
  });
  return found == std::end(kVerbs) ? nullptr : &*found;
}

std::string AsWords(const std::string& command) {
  if (command.find_first_of(";|&<>$`\n") == std::string::npos) return command;
  return "sh -c " + Quoted({command});
}

bool IsAssignment(const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  const auto legal = [](char c) { return IsLetterOrDigit(c) || c == '_'; };
  return name.size() < word.size() && !name.empty() && !IsDigit(name[0]) && std::ranges::all_of(name, legal);
}

std::optional<std::string> WithVariables(Words own, const Words& command) {
  const auto program = std::ranges::find_if_not(command, IsAssignment);
  if (program == command.begin() || program == command.end() || program->starts_with('-'))
    return std::nullopt;
  for (auto one = command.begin(); one != program; ++one) {
    own.insert(own.end(), {"--set", "job.env." + *one});
  }
  own.insert(own.end(), program, command.end());
  return Quoted(own);
}

std::optional<std::string> VerbLike(const std::string& word, const Words& verbs) {
  for (const Synonyms& row : kSynonyms) {
    std::string verb(row.verb);
    if (row.words.find(' ' + word + ' ') != std::string_view::npos && std::ranges::count(verbs, verb) > 0)
      return verb;
  }
  return std::nullopt;
}

void ReplaceAll(std::string* text, std::string_view old, std::string_view by) {
  for (std::size_t at = text->find(old); at != text->npos; at = text->find(old, at + by.size()))
    text->replace(at, old.size(), by);
}

std::string Quoted(const Words& words) {
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
