// dtrun-conformance: tries a plugin against the rules of docs/abi.md.
//
// The program that the user starts runs no code of the plugin: it starts itself again for each case.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <sstream>
#include <system_error>

#include "arguments.h"
#include "case_process.h"
#include "junit.h"
#include "manual.h"
#include "one_case.h"
#include "profile.h"
#include "report.h"
#include "sdk/conformance/backend_suite.h"
#include "under_test.h"

namespace dtrun::conformance::tool {
namespace {

namespace fs = std::filesystem;

// A process ends itself at the limit and says what its ranks did; the one that waits for it has more
// patience.
constexpr std::chrono::seconds kSlack{5};

// An init that takes longer is for the cases to find.
constexpr std::chrono::seconds kTrialLimit{30};

// Of a plugin that cannot be initialised with the options that were given. Hosts and Connect ask it with its
// defaults (L12).
bool NeedsInstance(const std::string& name, bool with_options) {
  if (name.starts_with("Hosts.") || name.starts_with("Connect.")) return !with_options;
  return !name.starts_with("Load.") || name == "Load.TouchesNothingInInit" ||
         name == "Load.TakesTheParametersOfInit";
}

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
  std::error_code gone;
  if (fs::current_path(gone).empty()) throw UsageError("the current folder was removed; cd to another one");
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
  const CaseResult loading = run(kLoading, std::min(limit, kTrialLimit));
  const std::size_t all = cases.size();
  const bool loads = loading.over && !loading.complained;
  if (!loads) {  // each would fail alike
    cases.assign(1, {});
    cases.front().name = "Load.CanBeLoaded";
    cases.front().rules = "V2";
  }
  const CaseResult trial = run(kTrial, std::min(limit, kTrialLimit));
  if (trial.over && trial.complained) {
    throw UsageError("'--set': " + trial.failures[0] + "; dtrun plugins describe lists the options");
  }
  const auto start = std::chrono::steady_clock::now();
  bool failed = false, tried_more = false;
  for (CaseResult& one : cases) {
    const bool skip =
        trial.kind == CaseResult::Kind::kSkipped && NeedsInstance(one.name, !arguments.options.empty());
    CaseResult result;
    if (!loads) {
      result = loading;
      result.kind = CaseResult::Kind::kFailed;
    } else if (skip) {
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
  if (!loads) PrintNote("the " + std::to_string(all) + " cases were not tried: the file cannot be loaded");
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
