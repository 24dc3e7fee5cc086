// What the muster says about hosts that are missing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/agent/muster.h"
#include "core/base/units.h"

namespace dtrun::agent {
namespace {

constexpr std::size_t kMostNamed = 8;
// A shell that has said nothing for so long is named as silent.
constexpr std::chrono::seconds kSilence{2};

}  // namespace

std::string Muster::WhyMissing(const Member& member) const {
  const Starter* const start = member.start;
  if (start == nullptr) return member.last_error;
  if (start->shell->HasStarted(member.number)) {
    return fmt::format("started by {}; {}", start->program,
                       member.last_error.empty() ? "it has not joined yet" : member.last_error);
  }
  if (!member.last_error.empty()) return member.last_error;
  const auto silent = std::chrono::steady_clock::now() - start->begun;
  if (silent < kSilence) return {};
  const std::string trial = cluster_.connect == Cluster::Connect::kSlurm
                                ? "srun --overlap hostname"
                                : fmt::format("{} {} true", start->program, member.name);
  return fmt::format(
      "{} has said nothing for {}; it may wait for the host or for a password: try `{}` by hand",
      start->program, FormatDuration(std::chrono::floor<std::chrono::seconds>(silent)), trial);
}

std::vector<std::pair<std::string, std::string>> Muster::Missing() const {
  std::vector<std::pair<std::string, std::string>> missing;
  for (const auto& member : members_) {
    if (!member->there()) missing.emplace_back(member->name, WhyMissing(*member));
  }
  const std::size_t there = There();
  if (cluster_.hosts[0].empty() && there < cluster_.hosts.size()) {
    missing.emplace_back(fmt::format("{} of {}", there, cluster_.hosts.size() - 1), "");
  }
  return missing;
}

std::string Muster::StatusLine() const {
  std::vector<std::pair<std::string, std::string>> reasons;  // and the hosts with each
  std::size_t missing = 0;
  std::string names;
  for (const auto& member : members_) {
    if (member->there()) continue;
    if (++missing <= kMostNamed) names += (names.empty() ? "" : ", ") + member->name;
    const std::string why = WhyMissing(*member);
    if (why.empty()) continue;
    const auto known = std::ranges::find_if(reasons, [&](const auto& one) { return one.first == why; });
    if (known != reasons.end()) {
      known->second += ", " + member->name;
    } else if (reasons.size() < kMostNamed) {
      reasons.emplace_back(why, member->name);
    }
  }
  if (missing > kMostNamed) names += ", …";
  if (cluster_.hosts[0].empty()) names = fmt::format("{}", cluster_.hosts.size() - There());
  std::string line = fmt::format("{} of {} hosts joined; missing: {}", There(), cluster_.hosts.size(), names);
  for (const auto& [why, hosts] : reasons) line += fmt::format("; {}: {}", hosts, why);
  return line;
}

}  // namespace dtrun::agent
