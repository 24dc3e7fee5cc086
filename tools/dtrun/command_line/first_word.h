// The first word of a program that is not what it seems: another launcher, which would start its own ranks
// below each of ours; or a word that other tools have as a verb.
//
// Constant data and pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::cli {

struct OtherLauncher {
  std::string name = {};       // as people call it: "accelerate launch"
  std::size_t words = 1;       // of the command that name it; its options follow
  bool torchrun = false;       // 'dtrun torchrun' takes its command line
  bool old = false;            // it is torch.distributed.launch
  std::string setting = {};    // that makes ranks find what it gives them: "job.dialects=horovod"
  bool mpi = false;            // launcher.name = "mpirun" has it start the ranks
  std::string otherwise = {};  // another way to type it, a line of the advice
  std::string family = {};  // whose flags it has: "mpirun", "srun", "horovodrun", "deepspeed", "accelerate"
  bool each_gpu = false;    // it starts a rank for each GPU, unless it is told a number
};

// By the name of its file, as in /usr/bin/mpirun; nullopt: the command is none.
std::optional<OtherLauncher> LauncherOf(const std::vector<std::string>& command);

struct VerbAdvice {
  std::string text;             // what to type instead
  bool beats_programs = false;  // also where PATH has a program of that name, which nobody runs in ranks
  bool superfluous = false;  // what stands behind it is a job's command line; `text` is for when nothing is
};

// For a word that reads like a verb, and is none of ours; nullopt: it does not.
std::optional<VerbAdvice> AdviceFor(const std::string& word);

// Words as a shell reads them back.
std::string Quoted(const std::vector<std::string>& words);

}  // namespace dtrun::cli
