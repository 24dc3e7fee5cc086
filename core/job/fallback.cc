#include "core/job/fallback.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/verdict/cause.h"

namespace dtrun::job {
namespace {

// How a way is given up.
struct Step {
  std::string_view way;  // as known failures name it
  // By the first variable, which is the user's word where he has set it. Others follow where they are free.
  std::vector<std::pair<std::string, std::string>> variables;
  std::string_view said;
};

// In the order in which they are tried.
const std::vector<Step>& Steps() {
  static const std::vector<Step> steps = {
      {"peer-access",
       {{"NCCL_P2P_DISABLE", "1"}, {"UCX_TLS", "^cuda_ipc"}},
       "without peer access between GPUs"},
      {"cuda-ipc", {{"UCX_TLS", "^cuda_ipc"}}, "without UCX's peer access between GPUs"},
      {"host-memory", {{"NCCL_SHM_DISABLE", "1"}}, "over the network alone"},
  };
  return steps;
}

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
  for (const Step& step : Steps()) {
    const auto& [first, value] = step.variables.front();
    const std::vector<std::string>& against = rank.known->finding.failure->against;
    if (std::ranges::find(against, step.way) == against.end() || IsDecided(plan, inherited, first)) continue;
    Fallback fallback;
    for (const auto& variable : step.variables) {
      if (!IsDecided(plan, inherited, variable.first)) fallback.variables.push_back(variable);
    }
    if (step.way != "host-memory") fallback.variables.emplace_back("DTRUN_P2P", "off");
    fallback.line = fmt::format("rank {}: {}; starting again {} ({}={})", rank.rank, rank.known->finding.what,
                                step.said, first, value);
    return fallback;
  }
  return {};
}

}  // namespace dtrun::job
