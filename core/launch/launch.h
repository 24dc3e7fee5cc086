// Starts this process's part of a job: the root of its hosts, or the agent of a host that joins an existing
// root.
//
// For every command line that starts jobs or checks their hosts. Main thread; each function forks, and
// returns when its part is over.
#pragma once

#include <functional>
#include <optional>

#include "core/job/run.h"
#include "core/launch/cluster_key.h"
#include "core/launch/preparation.h"
#include "core/node/user_report.h"

namespace dtrun::launch {

// The command line's additions to the config.
class Front : public job::Presenter {
 public:
  // Called before this host joins a remote root. Returns start information for status output on this host;
  // nullopt: quiet.
  virtual std::optional<node::OwnStart> Join() { return std::nullopt; }
  // The root's exit code at the end of the job.
  virtual int End(const job::Outcome& outcome) { return outcome.exit_code(); }
};

struct Manner {
  KeyRule key = {};    // if the user has given none
  bool quiet = false;  // no verdict for a successful job
};

// Runs the job. An error is the user's, and occurs before anything has started. REQUIRES: no problems.
Result<int> Launch(Preparation preparation, Front& front, const Manner& manner = {});

// The same with other work for the root: `lead` creates it, and it runs guarded (core/node/guard.h). Any
// other host calls `join`, as Front::Join.
using Work = std::function<int(process::Lifeline&)>;
Result<int> LeadOrJoin(Preparation preparation, const KeyRule& key,
                       const std::function<Result<Work>(Preparation& preparation)>& lead,
                       const std::function<std::optional<node::OwnStart>()>& join = {});

}  // namespace dtrun::launch
