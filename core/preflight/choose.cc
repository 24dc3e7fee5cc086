#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/preflight/preflight.h"

namespace dtrun::preflight {
namespace {

// "node1: no libnccl.so.2" of the hosts that object, alike ones together; empty for none.
std::string Objections(const std::vector<std::pair<std::string, Answer>>& by_host, std::size_t index) {
  std::vector<std::pair<std::string, std::vector<std::string>>> hosts_of;  // reason to hosts
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

}  // namespace

Result<Choice> ChooseBackend(const std::vector<std::pair<std::string, Answer>>& by_host) {
  const std::vector<BackendAnswer>& first = by_host.front().second.backends;
  for (const auto& [host, answer] : by_host) {
    if (answer.backends.size() != first.size())
      return Error{DTRUN_INTERNAL, fmt::format("host {} answered for {} backends, not {}", host,
                                               answer.backends.size(), first.size())};
  }
  Choice choice;
  for (; choice.index < first.size(); ++choice.index) {
    const std::string objections = Objections(by_host, choice.index);
    if (objections.empty()) return choice;
    choice.passed_over.push_back(fmt::format("{} cannot be used: {}", first[choice.index].name, objections));
  }
  if (first.size() == 1) {
    return Error{DTRUN_FAILED_PRECONDITION, "backend " + choice.passed_over.front()};
  }
  return Error{DTRUN_FAILED_PRECONDITION, fmt::format("none of the backends in backend.name can be used; {}",
                                                      fmt::join(choice.passed_over, "; "))};
}

}  // namespace dtrun::preflight
