// Which backend carries which kind of memory, according to the hosts' answers.
//
// A route is a backend that moves one kind of memory: host or device memory. Pure; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/preflight/preflight.h"

namespace dtrun::preflight {

// A backend that does not declare its memory moves host memory.
bool MovesDeviceMemory(const plugin::LaunchInfo& info);
bool MovesDeviceMemoryOnly(const plugin::LaunchInfo& info);

struct RouteCandidate {
  std::string name;
  bool host = true;    // it may carry host memory
  bool device = true;  // it may carry device memory
  bool unnamed =
      false;  // the config names others; this one carries host memory beside one for device memory only
  bool expected = false;  // expected to move device memory; an unusable backend cannot declare that itself
};

struct RouteWish {
  std::vector<RouteCandidate> candidates;  // in order of preference, unnamed ones last
  bool falls_back = false;                 // if a named one is unusable, the next one is used
  std::string device_kind = {};            // from backend.name, in the terms of its device plugin
};

struct Routes {
  std::size_t host = 0;               // index in the candidates
  std::optional<std::size_t> device;  // nullopt: none moves device memory
  // Why candidates before the host route were skipped, each "nccl cannot be used: on node1: ...".
  std::vector<std::string> passed_over;
  std::string no_device;  // why none moves device memory; empty: none is expected to
};

// Chooses for each kind of memory the first candidate that moves it and that all hosts can use. Fails if
// there is none for host memory, or if a required candidate cannot be used. REQUIRES: an answer.
Result<Routes> ChooseRoutes(const RouteWish& wish, const AnswersByHost& by_host);

}  // namespace dtrun::preflight
