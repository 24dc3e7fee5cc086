// Which backend carries which kind of memory, by what the hosts have answered.
//
// A route is what moves one kind of memory: the host's, or a device's. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/preflight/preflight.h"

namespace dtrun::preflight {

// The host's memory is what a backend moves that does not say what it does.
bool MovesDeviceMemory(const plugin::LaunchInfo& info);
bool MovesDeviceMemoryOnly(const plugin::LaunchInfo& info);

struct RouteCandidate {
  std::string name;
  bool host = true;    // it may carry the host's memory
  bool device = true;  // and a device's
  bool unnamed =
      false;  // the config names others: for the host's memory beside one that moves a device's only
  bool expected = false;  // to move device memory; what it moves it cannot tell where it cannot be used
};

struct RouteWish {
  std::vector<RouteCandidate> candidates;  // in order of preference, those without a name last
  bool falls_back = false;                 // of those with a name: the next one may do
  std::string device_kind = {};            // that backend.name gives, as its device plugin is called
};

struct Routes {
  std::size_t host = 0;               // place in the candidates
  std::optional<std::size_t> device;  // unset: none moves device memory
  // Why not those before the host's, each "nccl cannot be used: on node1: ...".
  std::vector<std::string> passed_over;
  std::string no_device;  // why none moves device memory; empty: none is expected to
};

// For each kind of memory the first candidate that moves it and that no host objects to. An error when there
// is none for the host's, or when one without which the job cannot be is objected to. REQUIRES: an answer.
Result<Routes> ChooseRoutes(const RouteWish& wish,
                            const std::vector<std::pair<std::string, Answer>>& by_host);

}  // namespace dtrun::preflight
