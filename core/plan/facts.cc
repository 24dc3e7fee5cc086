#include "core/plan/facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrun::plan {
namespace {

// Of one fact, more texts than these are left to the run directory.
constexpr std::size_t kMostTexts = 3;
constexpr std::size_t kMostNames = 4;

struct Said {
  std::string text;
  std::vector<std::string> hosts;
};

std::string Names(const std::vector<std::string>& hosts) {
  if (hosts.size() > kMostNames) return fmt::format("{} hosts", hosts.size());
  std::string out;
  for (const std::string& host : hosts) out += (out.empty() ? "" : ", ") + host;
  return out;
}

// "on: ..." of all hosts; "node0, node1: on: ...; node2: off: ..." where they differ.
std::string Fold(const std::vector<Said>& all) {
  if (all.size() == 1) return all.front().text;
  std::string out;
  std::size_t untold = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i >= kMostTexts) {
      untold += all[i].hosts.size();
      continue;
    }
    out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", Names(all[i].hosts), all[i].text);
  }
  return untold == 0 ? out : out + fmt::format("; another on each of {} more, in plan.json", untold);
}

}  // namespace

const plugin::LaunchInfo& InfoOf(const Backend& backend, std::size_t host) {
  static const plugin::LaunchInfo kNone;
  if (backend.info.empty()) return kNone;
  return backend.info[host < backend.info.size() ? host : 0];
}

void AddFacts(const Backend& backend, Plan* plan) {
  std::vector<std::pair<std::string, std::vector<Said>>>
      by_key;  // in the order of the first host that says it
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) {
    Host& host = plan->hosts[i];
    host.backend_facts = InfoOf(backend, i).facts;
    for (const auto& [key, text] : host.backend_facts) {
      if (key.starts_with(kPeerFact)) continue;
      auto known = std::ranges::find(by_key, key, [](const auto& one) { return one.first; });
      if (known == by_key.end()) known = by_key.insert(known, {key, {}});
      auto said = std::ranges::find(known->second, text, &Said::text);
      if (said == known->second.end()) said = known->second.insert(said, {text, {}});
      said->hosts.push_back(host.name);
    }
  }
  for (const auto& [key, said] : by_key) plan->backend_facts.emplace_back(key, Fold(said));
}

}  // namespace dtrun::plan
