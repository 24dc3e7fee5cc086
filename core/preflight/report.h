// The report of `dtrun doctor`, for people and for programs. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/preflight/network.h"

namespace dtrun::preflight {

struct CheckedHost {
  std::string name;
  std::vector<Check> checks;
};

struct DoctorReport {
  std::vector<CheckedHost> hosts;
  std::vector<Check> between;                  // results of comparing hosts
  std::optional<NetworkFinding> network = {};  // if there are several machines; `between` includes its checks
};

// Differences between hosts: clocks, libraries. `sent_seconds`: when the requests were sent, by the root's
// clock.
std::vector<Check> Compare(const std::vector<std::pair<std::string, Answer>>& by_host, double sent_seconds);

Level Worst(const DoctorReport& report);
std::string ToText(const DoctorReport& report);
Json ToJson(const DoctorReport& report);

}  // namespace dtrun::preflight
