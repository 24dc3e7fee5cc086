// What `dtrun doctor` found, for people and for programs. Pure; any thread.
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
  std::vector<Check> between;                  // what shows only when hosts are compared
  std::optional<NetworkFinding> network = {};  // of several machines; its checks are among those
};

// How the hosts differ: clocks, libraries. `sent_seconds`: when they were asked, by the root's clock.
std::vector<Check> Compare(const std::vector<std::pair<std::string, Answer>>& by_host, double sent_seconds);

Level Worst(const DoctorReport& report);
std::string ToText(const DoctorReport& report);
Json ToJson(const DoctorReport& report);

}  // namespace dtrun::preflight
