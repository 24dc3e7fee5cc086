// The verbs of `dtrun`. AddX declares a verb to the command line; parsing fills `to`, which must outlive the
// app. The others run a verb: they print its result and return the exit code: 0, or 2 for a user error that
// is explained on stderr. Main thread.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/bench/program/options.h"
#include "tools/dtrun/job_flags.h"
#include "tools/dtrun/new_plugin.h"
#include "tools/dtrun/templates.h"
#include "tools/dtrun/torchrun/arguments.h"

namespace dtrun::cli {

int Run(const ConfigArguments& arguments);
int RunAgent();  // on another host, started by its root
int ShowPlan(const ConfigArguments& arguments, bool json);

// `env`: prints a rank's environment in a dialect.

struct EnvArguments {
  ConfigArguments config;
  int rank = 0;
  std::string dialect;
  bool list = false;
  bool json = false;
  bool shell = false;
};

// Without its config options.
CLI::App* AddEnv(CLI::App& app, EnvArguments* to);
int ShowEnv(EnvArguments arguments);

// `doctor`: checks every host of a job before the job is started.

struct DoctorArguments {
  ConfigArguments config;
  bool json = false;
  std::string timeout = "20s";  // for all hosts to join
};

// Without its config options.
CLI::App* AddDoctor(CLI::App& app, DoctorArguments* to);
// 0 if nothing is worse than a warning, 1 for problems, 2 if the command line or the config is invalid.
int Doctor(DoctorArguments arguments);

// `config`: checks a config, explains an option, lists all options, creates a config.

// The verbs below `config` and their arguments besides the job's flags.
struct ConfigVerb {
  struct Arguments {
    std::string key;     // for explain
    std::string prefix;  // for list
    bool json = false;
    bool markdown = false;
    InitArguments init;
  };
  const CLI::App* check = nullptr;
  const CLI::App* explain = nullptr;
  const CLI::App* list = nullptr;
  const CLI::App* init = nullptr;
  std::shared_ptr<Arguments> own = std::make_shared<Arguments>();

  // The exit code; unset if another verb was given.
  std::optional<int> Run(const ConfigArguments& arguments) const;
};

ConfigVerb AddConfig(CLI::App& app, ConfigArguments* to);

// `plugins`: lists and describes plugins, checks and verifies files, makes a new one. `verify FILE` is no
// verb of the parser: its arguments are another program's.

// The verbs below `plugins` and their arguments.
struct PluginsVerb {
  struct Arguments {
    std::string name, kind;          // for describe
    std::vector<std::string> files;  // for check
    bool json = false;
    bool names_only = false;
    NewPluginArguments create;
  };
  const CLI::App* plugins = nullptr;
  const CLI::App* describe = nullptr;
  const CLI::App* check = nullptr;
  const CLI::App* create = nullptr;
  std::shared_ptr<Arguments> own = std::make_shared<Arguments>();

  // The exit code; unset if another verb was given.
  std::optional<int> Run(const ConfigArguments& arguments) const;
};

PluginsVerb AddPlugins(CLI::App& app, ConfigArguments* to);

// `bench`, and `bench-layer`, which it uses to start the job of each layer.

CLI::App* AddBench(CLI::App& app, bench::Arguments* to);
int Bench(const bench::Arguments& arguments);

// The same for bench-layer, for internal use by Bench. `socket`: the session's
// (tools/bench/program/channel.h).
CLI::App* AddBenchLayer(CLI::App& app, ConfigArguments* to, std::string* socket);
// Runs the job like `dtrun run`, but without a header: reports the choices to the session instead.
int BenchLayer(const ConfigArguments& arguments, const std::string& socket);

// `completion words`: completions for a partial command line. Reads the plugin folders, PATH and the
// templates.

// `runs`: verbs, besides the root, that take a program. Returns the exit code.
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
