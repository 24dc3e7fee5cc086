// Starts this process's part of a job: the root of its hosts, or the agent of one whose root somebody else
// has started.
//
// For every command line that starts jobs or looks at their hosts. Main thread; each forks, and returns when
// the part is over.
#pragma once

#include <functional>
#include <optional>

#include "core/job/run.h"
#include "core/launch/cluster_key.h"
#include "core/launch/preparation.h"
#include "core/node/user_report.h"

namespace dtrun::launch {

// What a command line adds to the config.
class Front : public job::Presenter {
 public:
  // This host is about to join a root elsewhere. Returns how the job was started here, for who follows what
  // happens on this host; nothing: stay silent.
  virtual std::optional<node::OwnStart> Join() { return std::nullopt; }
  // The exit code of the root, once the job is over.
  virtual int End(const job::Outcome& outcome) { return outcome.exit_code(); }
};

struct Manner {
  KeyRule key = {};    // where the user has given none
  bool quiet = false;  // a job that goes well gets no verdict
};

// Runs the job. An error: of the user's, before anything has started. REQUIRES: no problems.
Result<int> Launch(Preparation preparation, Front& front, const Manner& manner = {});

// Likewise with other work for the root. `lead` makes it, guarded (core/node/guard.h) it is done; `join` is
// called on any other host, as Front::Join.
using Work = std::function<int(process::Lifeline&)>;
Result<int> LeadOrJoin(Preparation preparation, const KeyRule& key,
                       const std::function<Result<Work>(Preparation& preparation)>& lead,
                       const std::function<std::optional<node::OwnStart>()>& join = {});

}  // namespace dtrun::launch
