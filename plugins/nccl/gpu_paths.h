// Which of NCCL's paths between the GPUs of a host the ranks may use (NCCL tries peer access, then
// host memory, then the network), from the options, the user's own variables and what a trial
// found. Pure but for what the inputs do; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nccl_options.h"
#include "peer_access.h"

namespace dtrun::nccl_plugin {

struct GpuPathInputs {
  Switch p2p = Switch::kAuto;
  Switch shm = Switch::kAuto;
  int local_ranks = 1;
  std::function<std::optional<std::string>(const char* variable)> inherited;  // by the ranks
  std::function<PeerReport()> ask;                                            // tries the peers
  std::uint64_t shm_free_bytes = 0;                                           // in /dev/shm
};

struct GpuPaths {
  std::vector<std::pair<std::string, std::string>> facts;  // for the run header
  // For every rank of the host, beside those that the options dictate.
  std::vector<std::pair<std::string, std::string>> variables;
};

// Throws sdk::Failure when p2p is asked for and a pair of devices cannot.
GpuPaths ChooseGpuPaths(const GpuPathInputs& inputs);

}  // namespace dtrun::nccl_plugin
