// Recognises misleading first words of a program: another launcher, which would start its own ranks below
// each rank, or a word that is a verb in other tools.
//
// Constant data and pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::cli {

struct OtherLauncher {
  std::string name = {};       // common name: "accelerate launch"
  std::size_t words = 1;       // number of words that name it; its options follow
  bool torchrun = false;       // 'dtrun torchrun' accepts its command line
  bool old = false;            // it is torch.distributed.launch
  std::string setting = {};    // makes its variables available to ranks: "job.dialects=horovod"
  bool mpi = false;            // launcher.name = "mpirun" uses it to start the ranks
  std::string otherwise = {};  // an alternative command, as a line of advice
  std::string family = {};     // of its flags: "mpirun", "srun", "horovodrun", "deepspeed", "accelerate"
  bool each_gpu = false;       // starts one rank per GPU by default
};

// Looks up the file name, as in /usr/bin/mpirun. Nullopt: the command is no launcher.
std::optional<OtherLauncher> LauncherOf(const std::vector<std::string>& command);

struct VerbAdvice {
  std::string text;             // what to type instead
  bool beats_programs = false;  // applies even if PATH has such a program, which is never used as a rank
  bool superfluous = false;     // a job's command line follows it; `text` is for when nothing follows
};

// Advice for a word that looks like a verb but is not one of dtrun's. Nullopt: it does not.
std::optional<VerbAdvice> AdviceFor(const std::string& word);

// The words quoted for a shell.
std::string Quoted(const std::vector<std::string>& words);

}  // namespace dtrun::cli
