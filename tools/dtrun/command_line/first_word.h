// Recognises misleading first words of a program: another launcher, which would start its own ranks below
// each rank, or a word that is a verb in other tools. Suggests what to type instead.
//
// Constant data and pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtrun::cli {

using Words = std::vector<std::string>;

struct OtherLauncher {
  std::string name = {};            // common name: "accelerate launch"
  std::size_t words = 1;            // number of words that name it; its options follow
  bool torchrun = false;            // 'dtrun torchrun' accepts its command line
  bool old = false;                 // it is torch.distributed.launch
  std::string_view setting = {};    // makes its variables available to ranks: "job.dialects=horovod"
  bool mpi = false;                 // launcher.name = "mpirun" uses it to start the ranks
  std::string_view otherwise = {};  // an alternative command, as a line of advice
  std::string_view family = {};     // of its flags: "mpirun", "srun", "horovodrun", "deepspeed", "accelerate"
  bool each_gpu = false;            // starts one rank per GPU by default
};

// Looks up the file name, as in /usr/bin/mpirun. Nullopt: the command is no launcher.
std::optional<OtherLauncher> LauncherOf(const Words& command);

struct VerbAdvice {
  std::string_view words;       // each surrounded by spaces
  std::string_view text;        // what to type instead
  bool beats_programs = false;  // applies even if PATH has such a program, which is never used as a rank
  bool superfluous = false;     // a job's command line follows it; `text` is for when nothing follows
};

// Advice for a word that looks like a verb but is not one of dtrun's. Null: it does not.
const VerbAdvice* AdviceFor(const std::string& word);

// Splits a command given as one word, such as 'python3 train.py'. Uses sh -c if only a shell can run it.
std::string AsWords(const std::string& command);

// "NAME=VALUE", as a shell accepts it before a program.
bool IsAssignment(const std::string& word);

// `own` and the command with its leading assignments turned into options. Nullopt: there is no assignment, or
// no program after it.
std::optional<std::string> WithVariables(Words own, const Words& command);

// The member of `verbs` that other tools call `word`.
std::optional<std::string> VerbLike(const std::string& word, const Words& verbs);

void ReplaceAll(std::string* text, std::string_view old, std::string_view by);

// The words quoted for a shell.
std::string Quoted(const Words& words);

}  // namespace dtrun::cli
