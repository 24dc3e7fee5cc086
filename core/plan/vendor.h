// Variables for programs that use a vendor's library directly: from the backend, and for other libraries'
// choice of network. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/network/decision.h"
#include "core/plan/plan.h"

namespace dtrun::plan {

struct VendorInputs {
  const std::vector<Host>& hosts;
  const std::vector<std::map<std::string, std::string>>& backend;  // from launch_info, by host
  const network::Decision* network;                                // null: not determined
  const std::map<std::string, std::string>& user;                  // job.env
  const std::map<std::string, std::string>& inherited;             // from dtrun's own environment
};

// The variables by host. A user's own setting, in a variable or a backend option, has precedence;
// one note reports it together with the check's finding. A GPU path that is disabled on one host is
// disabled on all, because the ranks of a job must agree on it; a note reports that too.
std::vector<std::map<std::string, std::string>> VendorEnvironments(const VendorInputs& inputs,
                                                                   std::vector<std::string>* notes);

}  // namespace dtrun::plan
