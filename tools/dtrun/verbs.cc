#include "tools/dtrun/verbs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/secrets.h"
#include "core/base/standard_output.h"
#include "core/base/text.h"
#include "core/plan/command.h"
#include "core/plugin/plugin.h"
#include "core/plugin/search_path.h"
#include "core/pmi/pmix_program.h"
#include "core/spec/lookup.h"
#include "tools/dtrun/command_line/split.h"
#include "tools/dtrun/completion/candidates.h"
#include "tools/dtrun/completion/man_page.h"
#include "tools/dtrun/options_page.h"
#include "tools/dtrun/plugins.h"
#include "tools/dtrun/reading.h"

namespace dtrun::cli {
namespace {

constexpr char kIntroduction[] =
    "Launches N copies of your training program, on this machine or on many, and connects them.\n\n"
    "  dtrun -n 4 python3 train.py                  4 ranks on this machine\n"
    "  dtrun -n 8 --hosts a,b train.py              4 on each of two hosts, by ssh\n"
    "  dtrun job.toml                               as the config says\n"
    "  dtrun torchrun --nproc-per-node 4 train.py   takes torchrun's command line\n";

constexpr char kEpilogue[] =
    "dtrun's options come before the program; what follows the program is passed to it. A word that is both "
    "a verb and a program is the verb: write ./plan or -- plan to run the program.\n"
    "Exit code: 0 when all ranks succeed; else the code of the rank that failed first (128 + signal for a "
    "signal); 2 when the command line or the config is wrong.\n"
    "Environment: DTRUN_CONFIG_<KEY> sets an option (backend.name: DTRUN_CONFIG_BACKEND_NAME); "
    "DTRUN_PLUGIN_PATH adds plugin folders; DTRUN_LOG sets the level of the log: debug, info, "
    "warn, error or off, or for its parts: DTRUN_LOG=info,node=debug,gloo=off. DTRUN_LOG_FORMAT=json writes "
    "JSON lines.\n"
    "While a job runs in a terminal: Ctrl-T prints where its ranks are, Ctrl-C ends it.\n"
    "'dtrun help VERB' explains a verb.\n";

// Whether an option provides what the command line lacks.
bool SetsCommand(const ConfigArguments& arguments) {
  return std::getenv("DTRUN_CONFIG_JOB_COMMAND") != nullptr ||
         std::ranges::any_of(arguments.sets,
                             [](const std::string& set) { return set.starts_with("job.command="); });
}

void AddVerbosity(CLI::App* verb, ConfigArguments* arguments) {
  verb->add_flag("-q,--quiet", arguments->quiet, "Print only what ranks print, and failures");
  verb->add_flag("-v,--verbose", arguments->verbose,
                 "Print the whole header, and how the command line was read");
  verb->add_option("--color", arguments->color, "When to color the output: auto, always or never")
      ->type_name("WHEN");
}

// The verbs with another program's command line, by name. The words after them are not for CLI11.
std::optional<torchrun::Program> ForeignVerb(std::string_view word) {
  if (word == "torchrun" || word == "torch.distributed.run") return torchrun::Program::kTorchrun;
  if (word == "torch.distributed.launch") return torchrun::Program::kLaunch;
  return std::nullopt;
}

// dtrun [--plugin-dir DIR ...] plugins verify PLUGIN and then dtrun-conformance's arguments, which no verb
// has.
std::optional<int> VerifyMain(const std::vector<std::string>& words) {
  constexpr std::string_view kFolder = "--plugin-dir";
  std::vector<std::string> folders;
  auto word = words.begin();
  for (; word != words.end() && word->starts_with(kFolder); ++word) {
    if (word->size() > kFolder.size() && (*word)[kFolder.size()] == '=') {
      folders.push_back(word->substr(kFolder.size() + 1));
    } else if (*word == kFolder && word + 1 != words.end()) {
      folders.push_back(*++word);
    } else {
      return std::nullopt;
    }
  }
  const bool verify =
      words.end() - word > 2 && word[0] == "plugins" && word[1] == "verify" && !word[2].starts_with('-');
  if (!verify) return std::nullopt;
  return VerifyPlugin(word[2], folders, {word + 3, words.end()});
}

// Handles such a command line and returns its exit code: dtrun-torchrun, dtrun [plan [--json]] torchrun,
// dtrun plugins verify FILE, or a process between mpirun and a rank.
std::optional<int> ForeignMain(int argc, char** argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (const auto code = mpirun::Main(words)) return code;
  const std::string_view self = argc > 0 ? argv[0] : "";
  if (FileName(self) == "dtrun-torchrun") {
    return Torchrun(torchrun::Program::kTorchrun, words, Purpose::kRun);
  }
  if (const auto code = VerifyMain(words)) return code;
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
  return Torchrun(*program, {words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end()}, purpose);
}

// Uses dtrun's helper programs where they are installed. Without dtrun-probe it probes with a copy of itself.
void UseOwnPrograms() {
  for (const std::filesystem::path& folder : plugin::InstalledFolders()) {
    const std::filesystem::path probe = folder.parent_path() / "dtrun-probe";
    if (::access(probe.c_str(), X_OK) == 0) plugin::SetProbeProgram(probe);
    const std::filesystem::path pmix = folder.parent_path() / "dtrun-pmix";
    if (::access(pmix.c_str(), X_OK) == 0) pmi::SetPmixProgram(pmix);
  }
}

// Subcommands are called verbs here, and three kinds of words may follow the root's options.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    label("SUBCOMMAND", "VERB");
    label("SUBCOMMANDS", "VERB");
  }
  // The descriptions state which options exclude each other.
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    return text.substr(0, text.find(" Excludes:"));
  }
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    constexpr std::string_view kTitle = "\nSubcommands:\n";
    std::string text = CLI::Formatter::make_subcommands(app, mode);
    return text.starts_with(kTitle) ? text.replace(0, kTitle.size(), "\nVerbs:\n") : text;
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_name() == "run" || app->get_name() == "plan" || app->get_name() == "doctor") {
      return fmt::format("Usage: dtrun {} [OPTIONS] [PROGRAM [ARGUMENTS...] | JOB.toml]\n", app->get_name());
    }
    if (app->get_parent() != nullptr) return CLI::Formatter::make_usage(app, name);
    return "Usage: dtrun [OPTIONS] PROGRAM [ARGUMENTS...]\n"
           "       dtrun [OPTIONS] JOB.toml\n"
           "       dtrun VERB ...\n";
  }
};

// Options and verbs, their targets, and the selected verb.
class CommandLine {
 public:
  CommandLine();
  // Returns the exit code.
  int Run(const std::vector<std::string>& words);
  // Prints completions of the words; returns the exit code.
  int Complete(const std::vector<std::string>& words) const { return ShowCandidates(app_, runs_, words); }

 private:
  void AddRun();
  void AddCompletion();
  void TakeCommand(std::vector<std::string> typed);
  int WriteManPages() const;
  int Dispatch();
  bool HasProgram() const;
  int NothingToRun(std::string_view verb) const;

  CLI::App app_{kIntroduction, "dtrun"};
  ConfigArguments arguments_;
  bool json_ = false;
  std::string man_folder_, swallowed_;
  Verbs verbs_;                        // those that run something else than a job
  std::vector<const CLI::App*> runs_;  // those that take a program
};

CommandLine::CommandLine() {
  app_.set_version_flag("-V,--version", std::string("dtrun " DTRUN_VERSION));
  app_.require_subcommand(0, 1);
  app_.formatter(std::make_shared<HelpFormatter>());
  AddJobFlags(&app_, &arguments_);
  AddVerbosity(&app_, &arguments_);
  AddRun();
  AddDoctor(app_, &arguments_, &verbs_);
  runs_.push_back(verbs_.back().app);
  for (AddVerb* const add : {AddExplain, AddPs, AddRuns, AddLogs, AddReport, AddStacks, AddTop, AddStop,
                             AddTrace, AddEnv, AddConfig, AddPlugins, AddBench})
    add(app_, &arguments_, &verbs_);
  AddCompletion();
  app_.footer(kEpilogue);  // last, because verbs inherit what is there before them
}

void CommandLine::AddRun() {
  CLI::App* run = app_.add_subcommand("run", "Run a job; the same as without a verb");
  AddJobFlags(run, &arguments_);
  AddVerbosity(run, &arguments_);
  CLI::App* plan =
      app_.add_subcommand("plan", "Print each process's exact command and environment; start nothing");
  AddJobFlags(plan, &arguments_);
  plan->add_flag("--json", json_,
                 "Machine-readable, nothing shortened; equals plan.json of the run directory");
  plan->footer(
      "Each variable is printed as a rank gets it, except secrets and DTRUN_BACKEND_OPTIONS, a record for "
      "dtrun's library, which is shown as (backend.options). --json has it whole.");
  verbs_.push_back(
      {plan, [this] { return HasProgram() ? ShowPlan(arguments_, json_) : NothingToRun("plan "); }});
  app_.add_subcommand("torchrun", "Take torchrun's command line; 'dtrun plan torchrun ...' previews it");
  // Internal: the root starts it on another host.
  verbs_.push_back({app_.add_subcommand("agent", "")->group(""), RunAgent});
  AddBenchLayer(app_, &arguments_, &verbs_);
  runs_ = {run, plan, verbs_.back().app};
}

void CommandLine::AddCompletion() {
  CLI::App* completion =
      app_.add_subcommand("completion", "Shell completion: source <(dtrun completion bash)");
  completion->require_subcommand(1);
  for (const CompletionScript& script : CompletionScripts()) {
    verbs_.push_back({completion->add_subcommand(script.shell, script.help), [&script] {
                        WriteOutput(script.text);
                        return 0;
                      }});
  }
  verbs_.push_back({completion->add_subcommand("keys", "Keys of options, one a line"), [] {
                      for (const auto& spec : spec::CoreSchema()) PrintOutput("{}\n", spec.key);
                      return 0;
                    }});
  // For the build, which installs the pages.
  CLI::App* man_pages = app_.add_subcommand("man-pages", "")->group("");
  man_pages->add_option("FOLDER", man_folder_, "Where they are written")->required();
  verbs_.push_back({man_pages, [this] { return WriteManPages(); }});
}

int CommandLine::WriteManPages() const {
  const std::string torchrun = torchrun::Help(torchrun::Program::kTorchrun);
  const std::filesystem::path folder(man_folder_);
  const auto write = [&](const std::filesystem::path& file, const std::string& text) {
    if (std::ofstream(folder / file) << text << std::flush) return true;
    PrintMessage("dtrun: cannot write {}\n", (folder / file).string());
    return false;
  };
  bool written = write("man5/dtrun.toml.5", OptionsManPage(CoreTables(), DTRUN_VERSION));
  for (const ManPage& page : ManPages(app_, DTRUN_VERSION, torchrun))
    written = written && write("man1/" + page.name + ".1", page.text);
  return written ? 0 : kUserError;
}

// The plan decides what runs; --verbose shows how it differs from the input.
void CommandLine::TakeCommand(std::vector<std::string> typed) {
  std::error_code failure;
  const char* path = std::getenv("PATH");
  arguments_.command = std::move(typed);
  const plan::TypedProgram program = plan::ProgramOf(arguments_.command, path == nullptr ? "" : path,
                                                     std::filesystem::current_path(failure));
  if (arguments_.verbose && !program.assumed.empty()) {
    PrintMessage("dtrun: {}\n", MaskText(program.assumed));
  }
}

int CommandLine::Run(const std::vector<std::string>& words) {
  Grammar grammar{&app_,
                  runs_,
                  [](const std::string& name) {
                    const char* path = std::getenv("PATH");
                    return plan::ProgramOf({name}, path == nullptr ? "" : path, ".").found;
                  },
                  [](const std::string& name) {
                    const auto& schema = spec::CoreSchema();
                    return spec::FindSpec(schema, name) != nullptr || spec::IsTable(schema, name);
                  },
                  [](const std::string& name) {
                    std::error_code failure;
                    return std::filesystem::is_regular_file(name, failure);
                  },
                  [](const std::string& name) { return spec::KeyNamed(spec::CoreSchema(), name); }};
  Result<SplitWords> split = SplitCommandLine(grammar, words);
  if (!split) return Refuse(split.error().text);
  if (split->verb == "torchrun") {
    return Torchrun(torchrun::Program::kTorchrun, {"--help"}, Purpose::kRun);
  }
  if (split->verb == "explain") KeepBrackets(&split->words);
  try {
    app_.parse(std::vector<std::string>(split->words.rbegin(), split->words.rend()));
  } catch (const CLI::Success& success) {
    std::ostringstream out, none;
    const int code = app_.exit(success, out, none);
    WriteHelp(out.str());
    return code;
  } catch (const CLI::ParseError& error) {
    PrintMessage("{}\n", Refusal(error, app_, split->verb));
    return kUserError;
  }
  if (arguments_.quiet && arguments_.verbose)
    return Refuse("--quiet and --verbose contradict each other; leave one of them out");
  if (arguments_.verbose)
    for (const std::string& line : split->assumed) PrintMessage("dtrun: {}\n", line);
  if (!arguments_.quiet)
    for (const std::string& line : split->warned) PrintMessage("dtrun: {}\n", line);
  swallowed_ = std::move(split->swallowed);
  arguments_.spelled = std::move(split->spelled);
  if (!split->command.empty()) TakeCommand(std::move(split->command));
  return Dispatch();
}

bool CommandLine::HasProgram() const {
  return !arguments_.file.empty() || !arguments_.command.empty() || SetsCommand(arguments_);
}

// `verb`: with a trailing space; empty: none.
int CommandLine::NothingToRun(std::string_view verb) const {
  PrintMessage(
      "dtrun: nothing to {}{}; try 'dtrun {}-n 2 python3 train.py', 'dtrun {}job.toml' or 'dtrun {}--help'\n",
      verb.empty() ? "run" : "plan", swallowed_.empty() ? "" : ": " + swallowed_, verb, verb, verb);
  return kUserError;
}

int CommandLine::Dispatch() {
  const auto parsed = std::ranges::find_if(verbs_, &CLI::App::parsed, &Verb::app);
  if (parsed != verbs_.end()) return parsed->run();
  return HasProgram() ? cli::Run(arguments_) : NothingToRun("");
}

}  // namespace

int Main(int argc, char** argv) {
  if (const int code = plugin::ProbeMain(argc, argv); code >= 0) return code;
  UseOwnPrograms();
  FormMessagesForReading();
  if (argc > 2 && std::string_view(argv[1]) == "completion" && std::string_view(argv[2]) == "words") {
    return FinishOutput(CommandLine().Complete({argv + 3, argv + argc}));  // these words are incomplete
  }
  const std::optional<int> foreign = ForeignMain(argc, argv);
  return FinishOutput(foreign ? *foreign : CommandLine().Run({argv + (argc > 0 ? 1 : 0), argv + argc}));
}

}  // namespace dtrun::cli
