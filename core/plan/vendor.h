// Variables for programs which use a vendor's library directly: what the backend wants, and what tells
// other libraries the network. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/net/decision.h"

namespace dtrun::plan {

struct VendorInputs {
  const std::vector<std::pair<std::string, std::string>>& backend;  // of its launch face
  const net::Decision* network;                                     // null: none was looked for
  const std::map<std::string, std::string>& user;                   // job.env
  const std::map<std::string, std::string>& inherited;              // from dtrun's own environment
};

// By host. What the user has set himself wins, in a variable or in an option of the backend; a note
// says so once, with what the proof says of it.
std::vector<std::map<std::string, std::string>> VendorEnvironments(const VendorInputs& inputs,
                                                                   std::size_t host_count,
                                                                   std::vector<std::string>* notes);

}  // namespace dtrun::plan
