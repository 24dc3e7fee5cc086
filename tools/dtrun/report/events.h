// The records of a job as a report shows them: the lives of its ranks, and lines of events.
//
// Pure; any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/verdict/records.h"
#include "tools/dtrun/report/chart.h"

namespace dtrun::report {

// A process in one generation, from its start to its end or `now`; times in seconds.
struct Life {
  int rank = 0;
  std::uint64_t generation = 0;
  std::string host;
  pid_t pid = 0;
  double from = 0, to = 0;
  Bar::Kind kind = Bar::Kind::kRuns;
  std::string how;  // "exited with code 0", "runs"
};
struct Lives {
  std::vector<Life> lives;
  std::vector<int> ranks;        // ascending
  std::vector<double> restarts;  // when generations after the first began
  std::uint64_t generation = 0;  // the last one
};
Lives LivesOf(const std::vector<verdict::Entry>& entries, double now);

struct EventLine {
  double seconds = 0;
  std::string from;  // empty: a gap
  std::string what;
};
// What people want to know, in order; of more than 500 the first and the last 250.
std::vector<EventLine> EventLines(const std::vector<verdict::Entry>& entries);

}  // namespace dtrun::report
