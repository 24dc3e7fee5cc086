// Runs one case in a process of its own, for a limited time, and says how it ended.
//
// Used by the main thread.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "family.h"

namespace dtrun::conformance::tool {

struct CaseResult {
  enum class Kind { kPassed, kSkipped, kFailed };
  Kind kind = Kind::kPassed;
  std::string name;                   // "Suite.Case"
  std::string rules;                  // "C4, F2"
  std::string reason;                 // of a skip, or in a few words of a failure
  std::vector<std::string> failures;  // what was expected, one text each
  std::string output;                 // the last lines on stderr of a process that did not end well
  double seconds = 0;
  bool over = false;        // it has said all
  bool complained = false;  // it has said a failure itself
};

// No process of the case has run, which is no fault of the plugin. The text says what ended instead.
struct NotStarted : std::runtime_error {
  using runtime_error::runtime_error;
};

// Thrown when a signal asks this program to end; no process of a case is left then.
struct Interrupted {
  int signal;
};

// Of a case that is run `times` times, unless it is skipped: the first run that failed, else the first; with
// the seconds of all, and how many failed in `reason`.
CaseResult RunRepeatedly(int times, const std::function<CaseResult()>& run);

class CaseRunner {
 public:
  enum class Ending { kByItself, kTooLate, kTooMany, kTooLoud };
  // Blocks SIGCHLD and the signals that ask a program to end, and stays the parent of orphans.
  CaseRunner();
  CaseRunner(const CaseRunner&) = delete;
  CaseRunner& operator=(const CaseRunner&) = delete;

  // Starts `command`, which ends with arguments of this program that name the case. Results are in `folder`,
  // which is the case's own, as files that begin with "record"; kRecord is the first of them. No process of
  // the case is left; a plugin's that was fails it. `launched`: the command is a launcher's, which may leave
  // processes of its own. Throws Interrupted and NotStarted.
  CaseResult Run(const std::vector<std::string>& command, const std::string& folder,
                 std::chrono::seconds limit, bool launched);

 private:
  // Waits for `child`, with files in `folder`, until `deadline`.
  Ending Await(pid_t child, const std::string& folder, std::chrono::steady_clock::time_point deadline,
               int* status) const;

  sigset_t awaited_;
  const Family family_;
};
inline constexpr char kRecord[] = "record";

}  // namespace dtrun::conformance::tool
