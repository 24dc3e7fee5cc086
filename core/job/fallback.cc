#include "core/job/fallback.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/failures/table.h"
#include "core/verdict/cause.h"

namespace dtrun::job {
namespace {

bool IsDecided(const plan::Plan& plan, const std::function<bool(std::string_view)>& inherited,
               const std::string& variable) {
  return inherited(variable) || std::ranges::any_of(plan.processes, [&](const plan::Process& process) {
           return process.env.contains(variable);
         });
}

}  // namespace

std::optional<Fallback> NextFallback(const verdict::Facts& facts, const plan::Plan& plan,
                                     const std::function<bool(std::string_view)>& inherited) {
  const verdict::Cause cause = verdict::FindCause(facts);
  if (facts.interrupt != 0 || facts.guard_died || !facts.losses.empty()) return {};
  if (cause.kind != verdict::Cause::Kind::kRank) return {};
  const verdict::RankFacts& rank = facts.ranks[cause.index];
  if (!rank.known || !rank.known->recent) return {};
  const std::vector<std::string>& against = rank.known->finding.failure->against;
  const auto known = failures::Known();
  for (const failures::FallbackLevel& level : known->fallbacks()) {
    const auto& [first, value] = level.variables.front();
    if (std::ranges::find(against, level.path) == against.end() || IsDecided(plan, inherited, first))
      continue;
    Fallback fallback;
    for (const auto& variable : level.variables) {
      // dtrun's own variables record its findings, which no longer hold.
      if (variable.first.starts_with("DTRUN_") || !IsDecided(plan, inherited, variable.first))
        fallback.variables.push_back(variable);
    }
    fallback.line = fmt::format("rank {}: {}; restarting all ranks {} ({}={})", rank.rank,
                                rank.known->finding.what, level.said, first, value);
    return fallback;
  }
  return {};
}

}  // namespace dtrun::job
