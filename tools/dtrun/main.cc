// dtrun: starts one training program as many processes. The command line.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"
#include "core/pmi/pmix_program.h"
#include "tools/dtrun/bench.h"
#include "tools/dtrun/doctor.h"
#include "tools/dtrun/env.h"
#include "tools/dtrun/explain.h"
#include "tools/dtrun/mpirun/verbs.h"
#include "tools/dtrun/torchrun/verb.h"
#include "tools/dtrun/verbs.h"

namespace {

using dtrun::cli::ConfigArguments;

constexpr char kEpilogue[] =
    "Everything after -- replaces job.command of the config.\n"
    "Exit code: 0 when all ranks succeed; else the code of the rank that failed first (128 + signal\n"
    "for a signal); 2 when the command line or the config is wrong.\n"
    "Environment: DTRUN_CONFIG_<KEY> sets an option (backend.name: DTRUN_CONFIG_BACKEND_NAME);\n"
    "DTRUN_PLUGIN_PATH adds plugin folders; DTRUN_LOG = debug, info, warn or error.\n";

void AddOverrides(CLI::App* app, ConfigArguments* arguments) {
  app->add_option("--set", arguments->sets,
                  "Set an option; comes after file and environment, may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  app->add_option("--plugin-dir", arguments->plugin_dirs, "Folder to look for plugins first; may be repeated")
      ->type_name("DIR")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

void AddConfig(CLI::App* app, ConfigArguments* arguments) {
  app->add_option("-c,--config", arguments->file, "TOML file of the job")->type_name("FILE");
  AddOverrides(app, arguments);
}

void AddHostIndex(CLI::App* app, ConfigArguments* arguments) {
  app->add_option("--host-index", arguments->host_index,
                  "Which of the hosts this one is, from 0, with cluster.connect = \"manual\"")
      ->type_name("N");
}

// Splits at the first "--": what follows is the job's command and none of our business.
std::vector<std::string> TakeCommand(int* argc, char** argv) {
  for (int i = 1; i < *argc; ++i) {
    if (std::strcmp(argv[i], "--") != 0) continue;
    std::vector<std::string> command(argv + i + 1, argv + *argc);
    *argc = i;
    return command;
  }
  return {};
}

// The verbs whose command line is another program's, by the names that one has: what follows
// them is not for CLI11.
std::optional<dtrun::torchrun::Program> ForeignVerb(std::string_view word) {
  if (word == "torchrun" || word == "torch.distributed.run") return dtrun::torchrun::Program::kTorchrun;
  if (word == "torch.distributed.launch") return dtrun::torchrun::Program::kLaunch;
  return std::nullopt;
}

// The exit code, when the command line is such a one: as dtrun-torchrun, or
// dtrun [plan [--json]] torchrun; or that of a process between an mpirun and a rank.
std::optional<int> ForeignMain(int argc, char** argv) {
  using dtrun::cli::Purpose;
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (const auto code = dtrun::mpirun::Main(words)) return code;
  const std::string_view self = argc > 0 ? argv[0] : "";
  if (self.substr(self.rfind('/') + 1) == "dtrun-torchrun") {
    return dtrun::cli::Torchrun(dtrun::torchrun::Program::kTorchrun, words, Purpose::kRun);
  }
  std::size_t at = 0;
  Purpose purpose = Purpose::kRun;
  if (at < words.size() && words[at] == "plan") {
    purpose = Purpose::kPlanText;
    if (++at < words.size() && words[at] == "--json") {
      purpose = Purpose::kPlanJson;
      ++at;
    }
  }
  const auto program = at < words.size() ? ForeignVerb(words[at]) : std::nullopt;
  if (!program) return std::nullopt;
  return dtrun::cli::Torchrun(*program, {words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end()},
                              purpose);
}

// The programs that dtrun starts for itself, where they are installed. Without dtrun-probe it probes with a
// copy of itself.
void UseOwnPrograms() {
  for (const std::filesystem::path& folder : dtrun::plugin::InstalledFolders()) {
    const std::filesystem::path probe = folder.parent_path() / "dtrun-probe";
    if (::access(probe.c_str(), X_OK) == 0) dtrun::plugin::SetProbeProgram(probe);
    const std::filesystem::path pmix = folder.parent_path() / "dtrun-pmix";
    if (::access(pmix.c_str(), X_OK) == 0) dtrun::pmi::SetPmixProgram(pmix);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const int code = dtrun::plugin::ProbeMain(argc, argv); code >= 0) return code;
  UseOwnPrograms();
  if (const std::optional<int> code = ForeignMain(argc, argv)) return *code;

  ConfigArguments arguments;
  arguments.command = TakeCommand(&argc, argv);
  bool json = false;
  bool names_only = false;
  std::string key, name, kind;

  CLI::App app(
      "Starts a training program as many processes and gives them a communicator.\n\n"
      "  dtrun --config FILE [--set KEY=VALUE]... [-- COMMAND ARGS...]\n",
      "dtrun");
  app.footer(kEpilogue);
  app.set_version_flag("--version", std::string("dtrun " DTRUN_VERSION));
  app.require_subcommand(0, 1);
  AddConfig(&app, &arguments);

  AddHostIndex(&app, &arguments);

  CLI::App* run = app.add_subcommand("run", "Run a job (the same as no verb)");
  AddConfig(run, &arguments);
  AddHostIndex(run, &arguments);

  CLI::App* plan =
      app.add_subcommand("plan", "Print every process that a run would start, and start nothing");
  AddConfig(plan, &arguments);
  plan->add_flag("--json", json, "Machine-readable; equals plan.json of the run directory");

  dtrun::cli::EnvArguments env_arguments;
  CLI::App* env = dtrun::cli::AddEnv(app, &env_arguments);
  AddConfig(env, &arguments);

  CLI::App* config = app.add_subcommand("config", "Check a config, or explain one option");
  config->require_subcommand(1);
  CLI::App* check = config->add_subcommand("check", "Report every problem of a config");
  check->add_option("FILE", arguments.file, "TOML file of the job")->required();
  AddOverrides(check, &arguments);
  CLI::App* option = config->add_subcommand("explain", "Value, origin and meaning of an option");
  option->add_option("KEY", key, "Such as backend.name")->required();
  AddConfig(option, &arguments);

  dtrun::cli::DoctorArguments doctor_arguments;
  CLI::App* doctor = dtrun::cli::AddDoctor(app, &doctor_arguments);
  AddConfig(doctor, &arguments);
  AddHostIndex(doctor, &arguments);

  dtrun::cli::ExplainArguments explain_arguments;
  const CLI::App* explain = dtrun::cli::AddExplain(app, &explain_arguments);

  CLI::App* plugins = app.add_subcommand("plugins", "List plugins, or describe one with its options");
  plugins->require_subcommand(1);
  CLI::App* list = plugins->add_subcommand("list", "Every plugin that can be found, and whether it loads");
  list->add_flag("--json", json, "Machine-readable");
  list->add_flag("--names", names_only, "Only names, without loading anything");
  AddOverrides(list, &arguments);
  CLI::App* describe =
      plugins->add_subcommand("describe", "What a plugin is, what it would use here, its options");
  describe->add_option("NAME", name, "Such as gloo, or the absolute path of a plugin file")->required();
  describe->add_option("--kind", kind, "When a backend and a launcher share the name")
      ->check(CLI::IsMember({"backend", "launcher"}));
  describe->add_flag("--json", json, "Machine-readable");
  AddOverrides(describe, &arguments);

  dtrun::bench::Arguments bench_arguments;
  const CLI::App* bench = dtrun::cli::AddBench(app, &bench_arguments);

  app.add_subcommand("torchrun",
                     "Take torchrun's command line: dtrun torchrun --help; likewise dtrun "
                     "torch.distributed.launch, and dtrun plan torchrun ...");

  CLI::App* completion =
      app.add_subcommand("completion", "Shell completion: source <(dtrun completion bash)");
  completion->require_subcommand(1);
  CLI::App* bash = completion->add_subcommand("bash", "Script for bash");
  CLI::App* keys = completion->add_subcommand("keys", "Option keys, a line each");

  // Started by the root on another host; for nobody else.
  const CLI::App* agent = app.add_subcommand("agent", "")->group("");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return 2;
  }

  if (agent->parsed()) return dtrun::cli::RunAgent();
  if (plan->parsed()) return dtrun::cli::ShowPlan(arguments, json);
  if (env->parsed()) {
    env_arguments.config = arguments;
    return dtrun::cli::ShowEnv(std::move(env_arguments));
  }
  if (check->parsed()) return dtrun::cli::CheckConfig(arguments);
  if (option->parsed()) return dtrun::cli::ExplainConfig(arguments, key);
  if (doctor->parsed()) {
    doctor_arguments.config = arguments;
    return dtrun::cli::Doctor(std::move(doctor_arguments));
  }
  if (explain->parsed()) return dtrun::cli::Explain(explain_arguments);
  if (list->parsed()) return dtrun::cli::ListPlugins(arguments, json, names_only);
  if (describe->parsed()) return dtrun::cli::DescribePlugin(arguments, name, kind, json);
  if (bench->parsed()) return dtrun::cli::Bench(bench_arguments);
  if (bash->parsed()) return dtrun::cli::BashCompletion();
  if (keys->parsed()) return dtrun::cli::CompleteKeys();
  if (arguments.file.empty() && arguments.command.empty()) {
    std::fputs("dtrun: nothing to run; give --config FILE, or a command after --; see dtrun --help\n",
               stderr);
    return 2;
  }
  return dtrun::cli::Run(arguments);
}
