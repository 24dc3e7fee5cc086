// Asks torch in a rank which collective its own flight recorder has: of a group of gloo or NCCL, which
// dtrun's recorder does not see.
//
// The rank's side is python/dtrun/torch/recorder.py. Any thread that may block.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <vector>

#include "core/contract/recorded_call.h"
#include "core/wire/limits.h"

namespace dtrun::node {

// Time for an answer. A rank needs Python's lock for it.
inline constexpr std::chrono::milliseconds kTorchPatience{200};

struct TorchCall {
  contract::RecordedCall call;
  std::vector<int> members;  // of its group, ranks of the world; empty: not known
  void Fields(auto& io) {
    call.Fields(io);
    io("members", members, wire::kMostEntries, wire::kAnyRank);
  }
};

// `folder`: the job's private one on this host. Unset: process `pid` offers no recorder, does not answer in
// time, or has recorded no collective.
std::optional<TorchCall> AskTorch(const std::filesystem::path& folder, pid_t pid,
                                  std::chrono::milliseconds limit = kTorchPatience);

}  // namespace dtrun::node
