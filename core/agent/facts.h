// What the agent saw of a run, without judgement: input of the verdict.
//
// Values, filled by the supervisor, read by verdict.h. Any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dtrun::agent {

struct Ending {
  int code = 0;    // when signal is 0
  int signal = 0;  // not 0: killed by it
  bool core_dumped = false;
  bool failed() const { return code != 0 || signal != 0; }
};

// A rank blames another one, through the store.
struct PeerReport {
  int peer = -1;  // -1: unknown
  std::string what;
};

struct RankFacts {
  int rank = 0;  // the first one that lives in the process
  std::string host;
  pid_t pid = 0;
  bool joined = false;                  // reached dtrun_init
  bool left = false;                    // reached dtrun_finalize
  std::optional<Ending> ending;         // unset: it could not be ended
  std::chrono::nanoseconds ended_at{};  // since the start of the run
  int signal_sent = 0;                  // last one dtrun sent before it ended, to end it
  std::vector<std::string> tail;        // its last lines of output
  std::vector<PeerReport> reports;      // what it said of others
};

struct Facts {
  std::string job;
  std::string run_dir;
  std::chrono::nanoseconds duration{};
  std::vector<RankFacts> ranks;  // by rank
  int first_failed = -1;         // index into ranks; -1: none failed before the run was ended
  int interrupt = 0;             // signal that ended the run before any rank failed
  bool guard_died = false;       // dtrun's first process was killed
};

}  // namespace dtrun::agent
