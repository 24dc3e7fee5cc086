// Assigns processors to the ranks of a host: a pure function of the host's processors.
//
// Every policy starts from equal shares of whole cores, so no core is idle and none is counted twice.
// "per-numa" and "per-socket" widen a share to the nodes or sockets it touches, "core" narrows it to one
// core, "spread" distributes the shares so that neighbouring ranks are far apart. Reasons:
// docs/decisions/009-binding.md. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/binding/topology.h"

namespace dtrun::binding {

enum class Policy { kAuto, kNone, kCompact, kSpread, kPerNuma, kPerSocket, kCore };

// The values of job.bind. REQUIRES for Parse: `text` is one of them.
const std::vector<std::string>& PolicyNames();
Policy ParsePolicy(std::string_view name);

struct Binding {
  std::vector<std::vector<int>> processors;  // by local rank, ascending; empty: inherited
  int cores = 0;  // of the host, for these ranks; cores / ranks is the smallest share
  std::string
      text;  // for the run header: "2 cores per rank, compact (processors of rank 0: 0-1, ...)", local ranks

  bool bound() const { return !processors.empty() && !processors[0].empty(); }
};

// `gpu_nodes`: the NUMA node of each rank's GPU, -1 if unknown; empty if the ranks use no GPUs.
// Ranks stay near their GPUs if all nodes are known and have a core for each of their ranks. If
// there are more ranks than cores, none is bound. REQUIRES: ranks >= 1, cores.
Binding Bind(const Topology& topology, int ranks, Policy policy, const std::vector<int>& gpu_nodes);

}  // namespace dtrun::binding
