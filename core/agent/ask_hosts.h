// Asks all hosts of a cluster without running a job on them: for `dtrun doctor`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/agent/cluster.h"
#include "core/agent/lifeline.h"
#include "core/base/result.h"

namespace dtrun::agent {

// Brings the hosts together, asks each its question (core/examination), and lets them go. The
// answers by host. Errors name the host that is missing or was lost, and the next step. `say` gets
// lines about who is missing. REQUIRES: called by the work of Guarded; a question for each host.
Result<std::vector<std::string>> AskHosts(const Cluster& cluster, const std::string& job,
                                          const std::vector<std::string>& questions, Lifeline& lifeline,
                                          const std::function<void(const std::string& line)>& say);

}  // namespace dtrun::agent
