// What a communicator of NCCL can be configured with, as far as the options set it: what is unset stays
// NCCL's own choice, and a library gets no more of the structure than is set.
//
// A value; constant once made. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dtrun/plugin.hpp"
#include "nccl_api.h"

namespace dtrun::nccl_plugin {

class CommConfig {
 public:
  // Throws sdk::Failure where an option is set that a library of that version does not know, or that
  // contradicts another.
  CommConfig(const sdk::Options& options, int nccl_version);

  // For ncclCommInitRankConfig; valid as long as this.
  nccl::Config Get() const;

 private:
  struct Value {
    int since;
    int nccl::Config::*member;
    int value;
  };
  std::vector<Value> values_;
  std::optional<std::string> net_name_;
};

}  // namespace dtrun::nccl_plugin
