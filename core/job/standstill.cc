#include "core/job/standstill.h"

#include <algorithm>
#include <utility>

namespace dtrun::job {
namespace {

// CPU share that a waiting rank may use: heartbeats, watchdogs, rounding to clock ticks.
constexpr int kIdlePercent = 2;
constexpr std::int64_t kIdleMs = 20;

}  // namespace

void Standstill::Add(const protocol::Inspected& seen, Clock::time_point at) {
  // Ranks that have ended or are new count as a change, too.
  bool moved = calls_ != seen.calls || ranks_.size() != seen.ranks.size();
  std::map<int, Rank> ranks;
  for (const verdict::RankDoing& now : seen.ranks) {
    const auto known = ranks_.find(now.rank);
    moved = moved || known == ranks_.end();
    Rank rank = known == ranks_.end() ? Rank{now, at, now.processor_ms} : std::move(known->second);
    const auto still_ms = std::chrono::duration_cast<std::chrono::milliseconds>(at - rank.since).count();
    rank.works = now.processor_ms - rank.used_then_ms > kIdleMs + still_ms * kIdlePercent / 100;
    const bool elsewhere = now.phrase != rank.seen.phrase;
    const bool transfers = now.bytes != rank.seen.bytes;
    // A computing rank is at another line each time: that is its work, and may be an endless loop.
    moved = moved || transfers || (elsewhere && !rank.works);
    // The end of a child process removes its times.
    if (rank.works || elsewhere || transfers || now.processor_ms < rank.used_then_ms) {
      rank.since = at;
      rank.used_then_ms = now.processor_ms;
    }
    rank.seen = now;
    rank.seen.text.clear();
    ranks.emplace(now.rank, std::move(rank));
  }
  ranks_ = std::move(ranks);
  calls_ = seen.calls;
  looked_ = at;
  if (moved) moved_ = at;
}

}  // namespace dtrun::job
