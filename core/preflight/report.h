// The report of `dtrun doctor`, for people and for programs. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/network/decision.h"
#include "core/preflight/preflight.h"

namespace dtrun::preflight {

// The doctor's checks from connectivity checks between hosts (core/network). Pure; any thread.

// A network search, finished or given up.
struct NetworkFinding {
  Result<network::Decision> decision;
  network::Evidence evidence;  // the attempts; without hosts if there were none
};

// The chosen network, the others, and, if something failed, which hosts reach each other.
std::vector<Check> CheckNetwork(const NetworkFinding& finding);

// Every direction between two hosts: "from", "to", "interfaces", "failed".
Json LinksToJson(const network::Evidence& evidence);

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
std::vector<Check> Compare(const AnswersByHost& by_host, double sent_seconds);

Level Worst(const DoctorReport& report);
std::string ToText(const DoctorReport& report);
Json ToJson(const DoctorReport& report);

}  // namespace dtrun::preflight
