#include "core/preflight/routes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text.h"
#include "dtrun/plugin/names.hpp"

namespace dtrun::preflight {
namespace {

// The memory that the backend declares: "host", "device", or both.
std::string MemoryOf(const plugin::LaunchInfo& info) { return FactOf(info.facts, "memory"); }

// "node1: no libnccl.so.2" for the hosts that cannot use it, grouped by reason; empty: none.
std::string Objections(const AnswersByHost& by_host, std::size_t index) {
  std::vector<std::pair<std::string, std::vector<std::string>>> hosts_of;  // reason -> hosts
  for (const auto& [host, answer] : by_host) {
    const std::string& reason = answer.backends[index].why_not;
    if (reason.empty()) continue;
    const auto known = std::ranges::find(hosts_of, reason, [](const auto& one) { return one.first; });
    if (known == hosts_of.end()) {
      hosts_of.push_back({reason, {host}});
    } else {
      known->second.push_back(host);
    }
  }
  std::string text;
  for (const auto& [reason, hosts] : hosts_of) {
    const std::string where = hosts.size() == by_host.size() ? ""
                              : hosts.size() > 4             ? fmt::format("on {} hosts: ", hosts.size())
                                                             : fmt::format("on {}: ", fmt::join(hosts, ", "));
    text += fmt::format("{}{}{}", text.empty() ? "" : "; ", where, reason);
  }
  return text;
}

// State of one candidate.
struct Standing {
  std::string objections;  // empty: all hosts can use it
  bool device = false;     // it is known to move device memory
  bool device_only = false;
  std::string kinds = {};  // device kinds, "cuda, rocm"; empty: unknown
};

Standing StandingOf(const RouteCandidate& candidate, std::size_t index, const AnswersByHost& by_host) {
  Standing standing{Objections(by_host, index)};
  bool known = false;
  for (const auto& [host, answer] : by_host) {
    const plugin::LaunchInfo& info = answer.backends[index].info;
    known = known || !info.facts.empty();
    standing.device = standing.device || MovesDeviceMemory(info);
    standing.device_only = standing.device_only || MovesDeviceMemoryOnly(info);
    if (standing.kinds.empty()) standing.kinds = FactOf(info.facts, "device_kinds");
  }
  if (!known && candidate.expected) standing.device = standing.device_only = true;
  return standing;
}

std::string PassedOver(const RouteCandidate& candidate, const Standing& standing) {
  return fmt::format("{} cannot be used: {}", candidate.name, standing.objections);
}

// REQUIRES: all usable candidates move only device memory.
Error NoHostRoute(const RouteWish& wish, const std::vector<Standing>& standings) {
  const auto usable =
      std::ranges::find_if(standings, [](const Standing& one) { return one.objections.empty(); });
  const auto device = static_cast<std::size_t>(usable - standings.begin());
  std::string why;
  for (std::size_t i = 0; i < standings.size(); ++i) {
    if (standings[i].objections.empty()) continue;
    why += (why.empty() ? "" : "; ") + PassedOver(wish.candidates[i], standings[i]);
  }
  return Error{DTRUN_FAILED_PRECONDITION,
               fmt::format("{0} moves device memory only, and no backend can be used for host memory{1}; "
                           "name one, as in backend.name = \"cpu:gloo,cuda:{0}\"",
                           wish.candidates[device].name, why.empty() ? "" : ": " + why)};
}

bool IsKnown(std::string_view kind) {
  for (std::int32_t known = DTRUN_DEVICE_CUDA; known <= DTRUN_DEVICE_LEVEL_ZERO; ++known) {
    if (kind == sdk::DeviceKindText(known)) return true;
  }
  return false;
}

// Kinds without a name in the ABI are those of device plugins; only their libraries know which.
constexpr std::string_view kUnnamedKind = "device kind ";

bool Moves(std::string_view kinds, std::string_view wanted) {
  for (const std::string_view kind : Split(kinds, ',')) {
    const std::string_view name = Trim(kind);
    if (name == wanted || (name.starts_with(kUnnamedKind) && !IsKnown(wanted))) return true;
  }
  return false;
}

// The backend moves memory of other devices than the config requests.
Error WrongKind(const RouteWish& wish, const std::string& name, const std::string& kinds) {
  const bool named = kinds.find(kUnnamedKind) == kinds.npos;
  return Error{DTRUN_FAILED_PRECONDITION,
               fmt::format("backend {0} does not move memory of {1}{2}; name another for {1}, or name the "
                           "host-memory backend for both, which stages it",
                           name, wish.device_kind,
                           named ? ", but of " + kinds : ", but of a device with a plugin of its own")};
}

}  // namespace

bool MovesDeviceMemory(const plugin::LaunchInfo& info) {
  return MemoryOf(info).find("device") != std::string::npos;
}

bool MovesDeviceMemoryOnly(const plugin::LaunchInfo& info) { return MemoryOf(info) == "device"; }

Result<Routes> ChooseRoutes(const RouteWish& wish, const AnswersByHost& by_host) {
  const std::vector<RouteCandidate>& candidates = wish.candidates;
  for (const auto& [host, answer] : by_host) {
    if (answer.backends.size() < candidates.size())
      return Error{DTRUN_INTERNAL, fmt::format("host {} answered for {} backends, not {}", host,
                                               answer.backends.size(), candidates.size())};
  }
  std::vector<Standing> standings;
  std::vector<std::string> refused;  // among named candidates
  std::size_t named = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    standings.push_back(StandingOf(candidates[i], i, by_host));
    if (candidates[i].unnamed) continue;
    ++named;
    if (standings[i].objections.empty()) continue;
    refused.push_back(PassedOver(candidates[i], standings[i]));
    if (!wish.falls_back) return Error{DTRUN_FAILED_PRECONDITION, "backend " + refused.back()};
  }
  if (refused.size() == named) {
    return Error{DTRUN_FAILED_PRECONDITION,
                 fmt::format("none of the backends can be used; {}", fmt::join(refused, "; "))};
  }

  Routes routes;
  std::optional<std::size_t> host;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const RouteCandidate& candidate = candidates[i];
    const Standing& standing = standings[i];
    if (!standing.objections.empty()) continue;
    if (!routes.device && candidate.device && !candidate.unnamed && standing.device) routes.device = i;
    if (!host && candidate.host && !standing.device_only) host = i;
  }
  if (!host) return NoHostRoute(wish, standings);
  routes.host = *host;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& kinds = standings[i].kinds;
    if (candidates[i].device && standings[i].device && !wish.device_kind.empty() && !kinds.empty() &&
        !Moves(kinds, wish.device_kind))
      return WrongKind(wish, candidates[i].name, kinds);
    if (candidates[i].host || standings[i].device) continue;
    return Error{
        DTRUN_FAILED_PRECONDITION,
        fmt::format("backend {0} moves host memory only, and device memory is staged over the backend for "
                    "host memory; name {1} for both, or a backend that moves device memory",
                    candidates[i].name, candidates[*host].name)};
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (standings[i].objections.empty()) continue;
    std::string why = PassedOver(candidates[i], standings[i]);
    if (!routes.device && standings[i].device && candidates[i].device)
      routes.no_device += (routes.no_device.empty() ? "" : "; ") + why;
    if (i < *host) routes.passed_over.push_back(std::move(why));
  }
  return routes;
}

}  // namespace dtrun::preflight
