// dtrun-conformance: tries a plugin against the rules of docs/abi.md.
//
// The program that the user starts runs no code of the plugin: it starts itself again for each case.
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <string_view>
#include <system_error>

#include "arguments.h"
#include "case_process.h"
#include "crash_stack.h"
#include "junit.h"
#include "manual.h"
#include "profile.h"
#include "record.h"
#include "report.h"
#include "sdk/conformance/backend_suite.h"
#include "sdk/conformance/guard.h"
#include "sdk/conformance/host.h"
#include "sdk/conformance/load.h"
#include "sdk/conformance/own_process.h"
#include "sdk/conformance/rank_watch.h"
#include "sdk/conformance/stack.h"
#include "under_test.h"

namespace dtrun::conformance::tool {
namespace {

namespace fs = std::filesystem;

// A process ends itself at the limit and says what its ranks did; the one that waits for it has more
// patience.
constexpr std::chrono::seconds kSlack{5};

// An init that takes longer is for the cases to find.
constexpr std::chrono::seconds kTrialLimit{30};

std::int32_t KindOf(const Arguments& arguments) {
  std::error_code problem;
  if (!fs::is_regular_file(arguments.plugin, problem)) {
    throw UsageError("'--plugin' is '" + arguments.plugin + "', which is no file" +
                     (problem ? " (" + problem.message() + ")" : "") + "; build the plugin first");
  }
  const std::int32_t kind = NameOfFile(arguments.plugin).kind;
  if (kind == 0) {
    throw UsageError(
        "'--plugin' is '" + arguments.plugin + "'; its file must be named libdtrun_backend_NAME.so, " +
        "libdtrun_launcher_NAME.so or libdtrun_device_NAME.so, NAME of a-z, 0-9, '_' and '-'; rename it");
  }
  return kind;
}

void InitTests() {
  std::vector<std::string> stray;  // GoogleTest would obey them
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("GTEST_")) stray.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : stray) unsetenv(name.c_str());
  int argc = 1;
  char name[] = "dtrun-conformance";
  char* argv[] = {name, nullptr};
  testing::InitGoogleTest(&argc, argv);
}

// ---- the process of one case

const RecordWriter* record = nullptr;

constexpr std::size_t kMessageBytes = 16 * 1024;

// Texts of a plugin may have any length, and std::regex needs stack for each character.
std::string Shortened(const std::string& text) {
  return text.size() <= kMessageBytes ? text : text.substr(0, kMessageBytes) + " ...";
}

// Paths of the source tree mean nothing to users who have only the program.
std::string WithoutFolders(const std::string& text) {
  static const std::regex kPath("/[^ :\n]*/sdk/conformance/");
  return std::regex_replace(text, kPath, "");
}

class Recorder final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    const std::string message = Shortened(result.message());
    if (result.skipped()) return record->Skip(message.substr(0, message.find("\nGoogle Test trace:")));
    if (!result.failed()) return;
    std::string text = WithoutFolders(message);
    if (result.file_name() != nullptr) {
      text += "\n(" + fs::path(result.file_name()).filename().string() + ":" +
              std::to_string(result.line_number()) + ")";
    }
    record->Failure(text);
  }
};

// Instead of a case: whether what the user typed fits the plugin, and whether that has an instance here.
constexpr char kTrial[] = "(trial)";

// Records what is wrong with the values of --set, and returns whether nothing is. Other defects are for the
// cases to find.
bool CheckOptions(const Arguments& arguments) {
  try {
    const dtrun_plugin& plugin = *LoadPlugin(arguments.plugin, KindOf(arguments));
    if (const std::string missing = MissingOption(plugin, arguments.options); !missing.empty()) {
      record->Failure(missing);
      return false;
    }
    if (!arguments.options.empty()) MakeOptions(plugin, arguments.options);
  } catch (const std::invalid_argument& error) {
    record->Failure(error.what());
    return false;
  } catch (const std::runtime_error&) {
  }
  return true;
}

// Whether a failure of init may lie at what this host has, not at the plugin.
bool LacksSomething(dtrun_status status) {
  return status == DTRUN_UNSUPPORTED || status == DTRUN_NOT_FOUND || status == DTRUN_FAILED_PRECONDITION ||
         status == DTRUN_VENDOR || status == DTRUN_SYSTEM;
}

// Options of plugins below that init has not opened.
void CheckOptionsBelow(const dtrun_options& options) {
  for (const auto& [key, value] : options.of_others) {
    const std::string name = key.substr(0, key.find('.'));
    if (HasOpened(name)) continue;
    return record->Failure("option '" + key +
                           "' is of no plugin here: the plugin stands on none of the name '" + name + "'");
  }
}

// Records, as the reason of a skip, what init says is missing here. Other failures are for the cases to find.
void TryInit(const Arguments& arguments) {
  try {
    const std::int32_t kind = KindOf(arguments);
    const dtrun_plugin& plugin = *LoadPlugin(arguments.plugin, kind);
    if (plugin.init == nullptr || plugin.shutdown == nullptr) return;
    const auto options = MakeOptions(plugin, arguments.options);
    dtrun_instance* instance = nullptr;
    dtrun_error error;
    DTRUN_ERROR_INIT(error);
    const dtrun_status status = sdk::InitPlugin(plugin, Host(kind), options.get(), &instance, &error);
    const bool has_text = error.message[0] != '\0' && std::memchr(error.message, '\0', sizeof error.message);
    if (status != DTRUN_OK && !WrongBelow().empty())
      record->Failure(WrongBelow());
    else if (LacksSomething(status) && has_text)
      record->Skip(std::string("cannot be initialised here: ") + error.message);
    if (status == DTRUN_OK) CheckOptionsBelow(*options);
    if (status == DTRUN_OK && instance != nullptr) plugin.shutdown(instance);
  } catch (const std::exception&) {
  }
}

// Of a plugin that cannot be initialised with the options that were given. Hosts and Connect ask it with its
// defaults (L12).
bool NeedsInstance(const std::string& name, bool with_options) {
  if (name.starts_with("Hosts.") || name.starts_with("Connect.")) return !with_options;
  return !name.starts_with("Load.") || name == "Load.TouchesNothingInInit" ||
         name == "Load.TakesTheParametersOfInit";
}

int RunOneCase(const Arguments& arguments) {
  ClaimProcess();
  setenv("DTRUN_CONFORMANCE_FOLDER", fs::absolute(arguments.record).parent_path().c_str(), 1);
  const LaunchedProcess place = PlaceOf(arguments);
  const RecordWriter writer(arguments.record + (place.size > 0 ? "." + std::to_string(place.rank) : ""));
  record = &writer;
  if (arguments.run_case == kTrial) {
    if (CheckOptions(arguments)) TryInit(arguments);
    writer.Over();
    return 0;
  }
  RankWatch::ListenForHangs([](const std::string& text) { record->Failure(text); });
  Register(arguments, KindOf(arguments), place);
  PrintStackOfCrash();
  ExplainCrashesBehindGuards();
  InitTests();
  GTEST_FLAG_SET(filter, arguments.run_case);
  testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
  delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new Recorder);
  const int code = RUN_ALL_TESTS();
  EndIfCopied();
  writer.Over();
  return code;
}

int TryOneCase(const Arguments& arguments) {
  try {
    return RunOneCase(arguments);
  } catch (const std::exception& error) {
    EndIfCopied();
    std::cerr << error.what() << "\n";
    return kNotStarted;
  }
}

// ---- the program that the user started

std::vector<CaseResult> Selected(const Arguments& arguments, const std::string& profile) {
  const std::regex only(arguments.only);
  std::vector<CaseResult> cases;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const std::string name = std::string(suite.name()) + "." + suite.GetTestInfo(j)->name();
      if (!InProfile(profile, name) || !std::regex_search(name, only)) continue;
      cases.push_back({});
      cases.back().name = name;
      cases.back().rules = RulesOf(name);
    }
  }
  if (cases.empty()) {
    throw UsageError("no case of profile " + profile + " has a name that '--only' '" + arguments.only +
                     "' finds; --list prints them");
  }
  return cases;
}

// A folder for the files of all cases; removed at the end.
class Folder {
 public:
  Folder() {
    std::error_code unusable;
    const fs::path where = fs::temp_directory_path(unusable);
    const char* const named = getenv("TMPDIR");
    if (unusable) {
      throw UsageError(std::string("the temporary folder '") + (named == nullptr ? "/tmp" : named) +
                       "' cannot be used: " + unusable.message() + "; set TMPDIR to a folder");
    }
    path_ = (where / "dtrun-conformance-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr)
      throw UsageError("cannot make a folder in '" + where.string() + "'; set TMPDIR");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> CommandOf(const Arguments& arguments, const std::vector<std::string>& words,
                                   const std::string& name, const std::string& folder) {
  std::vector<std::string> command;
  std::istringstream launch(arguments.launch);
  for (std::string word; launch >> word;) {
    const std::size_t at = word.find("{ranks}");
    if (at != word.npos) word.replace(at, 7, std::to_string(arguments.world));
    command.push_back(word);
  }
  command.push_back(fs::read_symlink("/proc/self/exe"));
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), {"--run-case", name, "--record", folder + "/" + kRecord});
  if (!arguments.launch.empty()) {
    fs::create_directory(folder + "/shared");
    command.insert(command.end(), {"--shared", folder + "/shared"});
  }
  return command;
}

int RunAll(const Arguments& arguments, const std::vector<std::string>& words) {
  const std::int32_t kind = KindOf(arguments);
  const std::string profile = ProfileFor(kind, arguments.profile);
  Register(arguments, kind, {});
  InitTests();
  std::vector<CaseResult> cases = Selected(arguments, profile);
  if (arguments.list) {
    for (const CaseResult& one : cases) std::cout << one.name << "  " << one.rules << "\n";
    return 0;
  }
  std::ofstream junit;
  if (!arguments.junit.empty()) {
    junit.open(arguments.junit);
    if (!junit)
      throw UsageError("'--junit' is '" + arguments.junit + "', which cannot be written; name another file");
  }
  const std::string file = fs::path(arguments.plugin).filename();
  std::cout << VersionText() << ": " << file << ", profile " << profile << ", up to " << arguments.world
            << " ranks, seed " << arguments.seed << ", " << cases.size() << " cases"
            << (arguments.repeat > 1 ? ", each " + std::to_string(arguments.repeat) + " times" : "")
            << std::endl;
  setenv("DTRUN_CONFORMANCE_TIMEOUT", std::to_string(arguments.timeout).c_str(), 1);
  CaseRunner runner;
  const Folder folder;
  const auto limit = std::chrono::seconds(arguments.timeout) + kSlack;
  const auto run = [&](const std::string& name, std::chrono::seconds own_limit) {
    const std::string own = folder.path() + "/" + name;
    fs::create_directory(own);
    CaseResult result =
        runner.Run(CommandOf(arguments, words, name, own), own, own_limit, !arguments.launch.empty());
    fs::remove_all(own);
    return result;
  };
  const CaseResult trial = run(kTrial, std::min(limit, kTrialLimit));
  if (!trial.started) {
    throw UsageError("no case can be started: " + trial.output);
  } else if (trial.over && trial.complained) {
    throw UsageError("'--set': " + trial.failures[0] + "; dtrun plugins describe lists the options");
  }
  const auto start = std::chrono::steady_clock::now();
  bool failed = false, tried_more = false;
  for (CaseResult& one : cases) {
    const bool skip =
        trial.kind == CaseResult::Kind::kSkipped && NeedsInstance(one.name, !arguments.options.empty());
    CaseResult result;
    if (skip) {
      result.kind = CaseResult::Kind::kSkipped;
      result.reason = trial.reason;
    } else {
      result = RunRepeatedly(arguments.repeat, [&] { return run(one.name, limit); });
    }
    tried_more = tried_more || (!skip && !one.name.starts_with("Load."));
    result.name = one.name;
    result.rules = RulesBroken(result.failures, one.rules);
    one = std::move(result);
    PrintResult(one);
    failed = failed || one.kind == CaseResult::Kind::kFailed;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  PrintSummary(cases, seconds);
  if (trial.kind == CaseResult::Kind::kSkipped && !tried_more)
    PrintNote("only loading was tried: the plugin " + trial.reason);
  if (junit.is_open() && !(junit << JunitXml(file, cases, seconds) << std::flush))
    throw UsageError("'--junit' is '" + arguments.junit +
                     "', which could not be written to the end; is the disk full?");
  return failed ? 1 : 0;
}

int Main(const std::vector<std::string>& words) {
  const Arguments arguments = ReadArguments(words);
  if (arguments.help)
    std::cout << HelpText();
  else if (arguments.version)
    std::cout << VersionText() << "\n";
  else if (arguments.manual_page)
    std::cout << ManualPage();
  else if (!arguments.run_case.empty())
    return TryOneCase(arguments);
  else
    return RunAll(arguments, words);
  return 0;
}

// `code`, unless a part of the output was lost.
int Finished(int code) {
  errno = 0;
  const bool whole = std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (whole) return code;
  PrintProblem("cannot write to standard output" +
               (errno == 0 ? std::string() : ": " + std::system_category().message(errno)));
  return 2;
}

// Its folder is removed by now; the exit status shows the signal.
int EndBySignal(int number) {
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  raise(number);
  return 2;
}

}  // namespace
}  // namespace dtrun::conformance::tool

int main(int argc, char** argv) {
  try {
    namespace tool = dtrun::conformance::tool;
    return tool::Finished(tool::Main({argv + 1, argv + argc}));
  } catch (const dtrun::conformance::tool::Interrupted& interrupted) {
    return dtrun::conformance::tool::EndBySignal(interrupted.signal);
  } catch (const std::exception& error) {
    dtrun::conformance::tool::PrintProblem(error.what());
    return 2;
  }
}
