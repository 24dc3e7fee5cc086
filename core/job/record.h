// What a run leaves in its directory besides the logs of the ranks.
//
// Written by the root; its loop thread. The job's key is in none of it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/job/run_dir.h"
#include "core/plan/plan.h"
#include "core/verdict/history.h"

namespace dtrun::job {

using Tokens = std::map<std::string, std::string>;

class Record {
 public:
  // `dir` outlives it.
  explicit Record(const RunDir& dir) : dir_(dir) {}

  // What was asked for: the plan's own record, the plan, and the environment that ranks
  // inherit, with secrets masked as far as they are known (core/base/secrets.h).
  Status WritePlan(const plan::Plan& plan, const std::vector<std::string>& environment) const;
  // The plan of a later generation, where it has changed.
  Status WriteNextPlan(std::uint64_t generation, const plan::Plan& plan) const;
  // What a generation settled, by host.
  Status WriteRuntime(std::uint64_t generation, const plan::Plan& plan,
                      const std::vector<Tokens>& tokens) const;
  // How the generations so far ended; the last one in full.
  Status WriteVerdict(const verdict::History& history) const;
  Status WriteNotStarted(const std::string& job, const std::string& error) const;
  Status WriteCalls(std::uint64_t generation, const std::string& calls) const;

  // Appends what ranks did, and why they were looked at.
  Status AddStacks(std::uint64_t generation, const std::string& why,
                   const std::vector<verdict::RankDoing>& ranks) const;

  // The folder of a generation's logs. That of generation 0 is the run directory itself.
  std::filesystem::path LogsOf(std::uint64_t generation) const;
  // The same, open, and made when it is not there; never through a link.
  Result<UniqueFd> OpenLogsOf(std::uint64_t generation) const;

 private:
  Status Write(std::uint64_t generation, const std::string& name, std::string_view content) const;

  const RunDir& dir_;
};

}  // namespace dtrun::job
