// Runs one case in a process of its own, for a limited time, and says how it ended.
//
// Used by the main thread, which blocks SIGCHLD.
#pragma once

#include <chrono>
#include <string>
#include <vector>

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
  bool started = true;  // else `output` says why not
  bool over = false;    // it has said all
};

// Exit code of a process whose case could not be started.
inline constexpr int kNotStarted = 125;

// Starts `command`, which ends with arguments of this program that name the case. Results are in `folder`,
// which is the case's own, as files that begin with "record"; kRecord is the first of them.
CaseResult RunCase(const std::vector<std::string>& command, const std::string& folder,
                   std::chrono::seconds limit);
inline constexpr char kRecord[] = "record";

}  // namespace dtrun::conformance::tool
