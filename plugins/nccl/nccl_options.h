// The options that the user may set for this backend: constant data, and their values. Any
// thread.
#pragma once

#include <optional>
#include <string>

#include "dtrun/plugin.hpp"

namespace dtrun::nccl_plugin {

const dtrun_option* OptionTable();
std::uint64_t OptionCount();

// Whether NCCL may use one of its ways between GPUs.
enum class Switch { kAuto, kOn, kOff };

struct NcclOptions {
  explicit NcclOptions(const sdk::Options& options);

  std::string library;       // empty: find it
  std::string cuda_library;  // empty: find it
  std::optional<std::string> interface;
  Switch p2p;
  Switch shm;
  Switch rdma;
  Switch gdr;
  std::optional<int> max_ctas;
};

}  // namespace dtrun::nccl_plugin
