// The verbs of `dtrun`. AddX declares a verb to the command line, with arguments of its own; `job` are those
// of a job's config, which parsing fills too. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/dtrun/job_flags.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::cli {

struct Verb {
  const CLI::App* app;
  // After parsing: prints the result and returns the exit code: 0, or 2 for a user error that is explained on
  // stderr, unless the verb's help says otherwise.
  std::function<int()> run;
};
using Verbs = std::vector<Verb>;

using AddVerb = void(CLI::App& app, ConfigArguments* job, Verbs* to);
AddVerb AddBench, AddConfig, AddDoctor, AddEnv, AddExplain, AddLogs, AddPs, AddReport, AddRuns, AddStacks,
    AddStop, AddTop, AddTrace;
// For internal use by `bench`, to start the job of each layer: --socket is the session's
// (tools/bench/program/channel.h).
AddVerb AddBenchLayer;
// `verify FILE` is no verb of the parser: its arguments are another program's.
AddVerb AddPlugins;

int Run(const ConfigArguments& arguments);
int RunAgent();  // on another host, started by its root
int ShowPlan(const ConfigArguments& arguments, bool json);
int PrintPlan(const plan::Plan& plan, bool json);

// For the words of `explain`, before parsing: CLI11 would take "[a,b]" for a list and drop its brackets and
// commas.
void KeepBrackets(std::vector<std::string>* words);

// `completion words`: completions for a partial command line. Reads the plugin folders, PATH and the
// templates. `runs`: verbs, besides the root, that take a program. Returns the exit code.
int ShowCandidates(const CLI::App& root, std::vector<const CLI::App*> runs,
                   const std::vector<std::string>& words);

// `torchrun` and `torch.distributed.launch`: run torchrun command lines on dtrun.

enum class Purpose { kRun, kPlanText, kPlanJson };

// 0; 1 if a rank failed or a signal ended the job; 2 if the command line is invalid or
// its request cannot be fulfilled here.
int Torchrun(torchrun::Program program, const std::vector<std::string>& words, Purpose purpose);

}  // namespace dtrun::cli

namespace dtrun::mpirun {

// Hidden verbs for the mpirun launcher's plan. Each becomes another program, or returns an exit code after an
// error message on stderr. Nothing if `words`, without dtrun's name, are none of them:
//
//   mpi-rank [--host] COMMAND...   started by mpirun: becomes a rank of the job, or with --host
//                                  the one process of a host
//   mpi-shell HOST COMMAND...      mpirun's remote shell
//   mpi-daemon                     what waits on the other hosts for mpirun's daemon
std::optional<int> Main(const std::vector<std::string>& words);

}  // namespace dtrun::mpirun
