#include "core/plan/steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace dtrun::plan {
namespace {

// At most this many texts per fact are shown; the run directory has the rest.
constexpr std::size_t kMostTexts = 3;
constexpr std::size_t kMostNames = 4;

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string Names(const std::vector<std::string>& hosts) {
  if (hosts.size() > kMostNames) return fmt::format("{} hosts", hosts.size());
  return fmt::format("{}", fmt::join(hosts, ", "));
}

// Each fact of the hosts once, with merged values.
Facts ToldOnce(const std::vector<Host>& hosts, Facts Host::*facts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_key;  // texts by host
  std::map<std::string, std::size_t> place_of;                           // in by_key
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    for (const auto& [key, text] : hosts[i].*facts) {
      if (key.starts_with(kPeerFact) || key.starts_with(kAgreeFact) || key.starts_with(kByFact)) continue;
      const auto [place, fresh] = place_of.emplace(key, by_key.size());
      if (fresh) by_key.emplace_back(key, std::vector<std::string>(hosts.size()));
      by_key[place->second].second[i] = text;
    }
  }
  Facts told;
  for (const auto& [key, texts] : by_key) told.emplace_back(key, TellByHost(hosts, texts));
  return told;
}

}  // namespace

const plugin::LaunchInfo& InfoOf(const Backend& backend, std::size_t host) {
  static const plugin::LaunchInfo kNone;
  if (backend.info.empty()) return kNone;
  return backend.info[host < backend.info.size() ? host : 0];
}

std::string FileIdOn(const Backend& backend, std::size_t host) {
  return host < backend.info.size() ? backend.info[host].file_id : std::string();
}

std::string TellByHost(const std::vector<Host>& hosts, const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::vector<std::string>>> said;  // text, and the hosts that have it
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty()) continue;
    auto known = std::ranges::find(said, texts[i], [](const auto& one) { return one.first; });
    if (known == said.end()) known = said.insert(known, {texts[i], {}});
    known->second.push_back(hosts[i].name);
  }
  if (said.empty()) return {};
  if (said.size() == 1) return said.front().first;
  std::string out;
  std::size_t untold = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const auto& [text, by] = said[i];
    if (i >= kMostTexts) {
      untold += by.size();
    } else {
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", Names(by), text);
    }
  }
  return untold == 0 ? out : out + fmt::format("; another on each of {} more, in plan.json", untold);
}

void AddFacts(const Backend& backend, Plan* plan) {
  for (std::size_t i = 0; i < plan->hosts.size(); ++i)
    plan->hosts[i].backend_facts = InfoOf(backend, i).facts;
  plan->backend_facts = ToldOnce(plan->hosts, &Host::backend_facts);
}

void AddDeviceFacts(const Backend& backend, Plan* plan) {
  for (std::size_t i = 0; i < plan->hosts.size(); ++i) plan->hosts[i].device_facts = InfoOf(backend, i).facts;
  plan->device_facts = ToldOnce(plan->hosts, &Host::device_facts);
}

}  // namespace dtrun::plan
