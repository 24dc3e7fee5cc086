#include "core/job/restart.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error_id.h"

namespace dtrun::job {
namespace {

constexpr std::chrono::minutes kLongestWait{1};

}  // namespace

RestartDecision DecideRestart(const RestartPolicy& policy, int restarts, const verdict::Facts& facts) {
  const verdict::Cause cause = verdict::FindCause(facts);
  const bool stalled = cause.kind == verdict::Cause::Kind::kStalled;
  if (policy.max == 0 && !(stalled && policy.after_stall)) return {};
  if (facts.interrupt != 0 || facts.guard_died || !facts.time_limit.empty()) return {};
  if (stalled && !policy.after_stall)
    return {false, {}, "watch.on_stall = \"fail\" ends a job without progress; \"restart\" restarts it"};
  if (policy.max == 0) return {false, {}, "restart.max is 0"};
  if (restarts >= policy.max) return {false, {}, fmt::format("restart.max = {} is used up", policy.max)};
  for (const verdict::RankFacts& rank : facts.ranks) {
    if (std::ranges::find(rank.reports, ErrorId::kPluginReplaced, &verdict::PeerReport::id) !=
        rank.reports.end())
      return {
          false,
          {},
          "a plugin was replaced while the job ran, and its ranks refuse the new file: start the job again"};
  }
  // A lost host counts as a network failure of the job, even if its agent was killed.
  const bool host = cause.kind == verdict::Cause::Kind::kHost;
  const verdict::ExitClass exit_class = host ? verdict::ExitClass::kNetwork : cause.exit_class;
  if (!policy.on.contains(exit_class)) {
    return {false, {}, fmt::format("restart.on does not list '{}'", verdict::ClassName(exit_class))};
  }
  std::chrono::nanoseconds wait{};
  if (restarts > 0) {
    wait = policy.backoff;
    for (int i = 1; i < restarts && wait < kLongestWait; ++i) wait *= 2;
    wait = std::min<std::chrono::nanoseconds>(
        wait, std::max<std::chrono::nanoseconds>(kLongestWait, policy.backoff));
  }
  return {true, wait, fmt::format("restart {} of {}", restarts + 1, policy.max)};
}

}  // namespace dtrun::job
