// The files that a run writes to its directory besides the ranks' logs.
//
// Written by the root; its loop thread. None of them contains the job's key.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/run_dir.h"
#include "core/plan/plan.h"
#include "core/verdict/event_log.h"

namespace dtrun::job {

using Tokens = std::map<std::string, std::string>;

class Record {
 public:
  // `dir` must outlive it.
  explicit Record(const RunDir& dir) : dir_(dir) {}

  // Writes the request: the plan's own record, the plan, and the environment that ranks inherit, with known
  // secrets masked (core/base/secrets.h).
  Status WritePlan(const plan::Plan& plan, const std::vector<std::string>& environment) const;
  // Writes the plan of a later generation, if it has changed.
  Status WriteNextPlan(std::uint64_t generation, const plan::Plan& plan) const;
  // Writes the resolved values of a generation, by host.
  Status WriteRuntime(std::uint64_t generation, const plan::Plan& plan,
                      const std::vector<Tokens>& tokens) const;
  // Writes how the generations so far ended; the last one in full.
  Status WriteVerdict(const verdict::Story& story) const;
  Status WriteNotStarted(const std::string& job, const Error& error) const;
  Status WriteCalls(std::uint64_t generation, const std::string& calls) const;

  // Appends to events.log (verdict::EventLog::Write).
  Status AddEvent(std::string_view line, bool anew) const;
  // Appends the ranks' stacks and the reason for the inspection.
  Status AddStacks(std::uint64_t generation, const std::string& why,
                   const std::vector<verdict::RankDoing>& ranks) const;

  // The folder of a generation's logs; for generation 0 the run directory itself.
  std::filesystem::path LogsOf(std::uint64_t generation) const;
  // The same folder, opened, and created if missing; never follows a link.
  Result<UniqueFd> OpenLogsOf(std::uint64_t generation) const;

 private:
  Status Write(std::uint64_t generation, const std::string& name, std::string_view content) const;

  const RunDir& dir_;
  mutable UniqueFd events_;
};

}  // namespace dtrun::job
