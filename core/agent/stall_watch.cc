#include "core/agent/stall_watch.h"

#include <algorithm>
#include <utility>

namespace dtrun::agent {
namespace {

// What a rank that waits may use: heartbeats, watchdogs.
constexpr int kIdlePercent = 2;
constexpr std::int64_t kIdleBytes = 64 << 10;

}  // namespace

std::vector<int> IdleBetween(const Inspected& before, const Inspected& after,
                             std::chrono::nanoseconds apart) {
  const auto apart_ms = std::chrono::duration_cast<std::chrono::milliseconds>(apart).count();
  std::vector<int> idle;
  for (const RankDoing& now : after.ranks) {
    const auto then = std::ranges::find(before.ranks, now.rank, &RankDoing::rank);
    if (then == before.ranks.end()) continue;
    // A process below it that has ended takes its times away.
    const std::int64_t used = std::max<std::int64_t>(now.processor_ms - then->processor_ms, 0);
    const std::int64_t bytes = std::max<std::int64_t>(now.bytes - then->bytes, 0);
    if (used * 100 <= apart_ms * kIdlePercent && bytes <= kIdleBytes) idle.push_back(now.rank);
  }
  return idle;
}

StallWatch::StallWatch(boost::asio::io_context& loop, StallPolicy policy, Events events)
    : timer_(loop), policy_(policy), events_(std::move(events)) {
  if (policy_.after.count() > 0) WaitUntil(last_ + policy_.after / 2);
}

void StallWatch::Progress() {
  last_ = Clock::now();
  before_.reset();
  told_ = false;
}

void StallWatch::WaitUntil(Clock::time_point at) {
  timer_.expires_at(at);
  timer_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended) return;
    const auto due = last_ + policy_.after / 2;
    if (!before_ && Clock::now() < due) return WaitUntil(due);  // they have printed since
    Look();
  });
}

void StallWatch::Look() {
  const auto begin = Clock::now();
  events_.look([this, begin, ended = ended_](const Inspected& now) {
    if (*ended) return;
    if (last_ >= begin) return WaitUntil(last_ + policy_.after / 2);
    Compare(now);
  });
  // An answer may never come: another look has taken its place.
  WaitUntil(begin + policy_.after / 2);
}

void StallWatch::Compare(const Inspected& now) {
  const auto before = std::exchange(before_, now);
  const auto apart = Clock::now() - std::exchange(looked_, Clock::now());
  if (!before || before->calls != now.calls || before->ranks.size() != now.ranks.size()) {
    told_ = told_ && before && before->calls == now.calls;
    return;
  }
  const std::vector<int> idle = IdleBetween(*before, now, apart);
  if (idle.empty()) {
    told_ = false;
    return;
  }
  if (Quiet() < policy_.after || std::exchange(told_, true)) return;
  Stall stall{Quiet(), now.ranks, {}};
  for (const RankDoing& rank : now.ranks) {
    if (std::ranges::find(idle, rank.rank) == idle.end()) stall.working.push_back(rank.rank);
  }
  events_.stalled(stall);
}

}  // namespace dtrun::agent
