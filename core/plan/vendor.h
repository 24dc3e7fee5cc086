// Variables for programs which use a vendor's library directly: what the backend wants, and what tells
// other libraries the network. Pure; any thread.
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
  const std::vector<std::map<std::string, std::string>>& backend;  // of its launch face, by host
  const network::Decision* network;                                // null: none was looked for
  const std::map<std::string, std::string>& user;                  // job.env
  const std::map<std::string, std::string>& inherited;             // from dtrun's own environment
};

// By host. A user's own setting wins, in a variable or in an option of the backend; a note
// says so once, with what the check found. A GPU path that is disabled on one host is disabled on
// all, because the ranks of a job agree on it; a note says that too.
std::vector<std::map<std::string, std::string>> VendorEnvironments(const VendorInputs& inputs,
                                                                   std::vector<std::string>* notes);

}  // namespace dtrun::plan
