#include "core/agent/restart.h"

#include <fmt/format.h>

#include <algorithm>

namespace dtrun::agent {
namespace {

constexpr std::chrono::seconds kInstant{1};
constexpr std::chrono::minutes kLongestWait{1};

// A program that fails at once fails at once again: a wrong argument, a missing module.
bool FailedAtStartUp(const Facts& facts, const Cause& cause) {
  if (facts.generation > 0 || cause.kind != Cause::Kind::kRank) return false;
  if (cause.exit_class != ExitClass::kUserError || facts.ranks[cause.index].ended_at >= kInstant)
    return false;
  return std::ranges::none_of(
      facts.ranks, [](const RankFacts& rank) { return rank.joined || rank.mpi != RankFacts::Mpi::kNone; });
}

}  // namespace

RestartDecision DecideRestart(const RestartPolicy& policy, const Facts& facts) {
  if (policy.max == 0) return {};
  const Cause cause = FindCause(facts);
  if (facts.interrupt != 0 || facts.guard_died) return {};
  if (facts.generation >= static_cast<std::uint64_t>(policy.max)) {
    return {false, {}, fmt::format("restart.max = {} is used up", policy.max)};
  }
  if (!facts.losses.empty()) {
    return {
        false, {}, fmt::format("host {} is lost, and a job restarts on all its hosts", facts.losses[0].host)};
  }
  if (!policy.on.contains(cause.exit_class)) {
    return {false, {}, fmt::format("restart.on does not list '{}'", ClassName(cause.exit_class))};
  }
  if (FailedAtStartUp(facts, cause)) {
    return {false, {}, "it failed within a second of its first start, before any rank had joined"};
  }
  std::chrono::nanoseconds wait{};
  if (facts.generation > 0) {
    wait = policy.backoff;
    for (std::uint64_t i = 1; i < facts.generation && wait < kLongestWait; ++i) wait *= 2;
    wait = std::min<std::chrono::nanoseconds>(
        wait, std::max<std::chrono::nanoseconds>(kLongestWait, policy.backoff));
  }
  return {true, wait, fmt::format("restart {} of {}", facts.generation + 1, policy.max)};
}

}  // namespace dtrun::agent
