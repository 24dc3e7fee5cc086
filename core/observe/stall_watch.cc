#include "core/observe/stall_watch.h"

#include <algorithm>
#include <utility>

#include "core/stacks/doing.h"
#include "core/verdict/waits.h"

namespace dtrun::observe {
namespace {

constexpr int kLooksPerLimit = 8;
constexpr std::chrono::nanoseconds kNotMoreOften = std::chrono::milliseconds(100);
// Timeout for an answer that never arrives because another look replaced it. Longer than any answer takes.
constexpr std::chrono::nanoseconds kNoAnswer = std::chrono::seconds(5);

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
    Rank rank =
        known == ranks_.end() ? Rank{now, at, now.processor_ms, now.kernel_ms} : std::move(known->second);
    const auto still_ms = std::chrono::duration_cast<std::chrono::milliseconds>(at - rank.since).count();
    const std::int64_t used_ms = now.processor_ms - rank.used_then_ms;
    const bool polls = now.in_source && !now.runs && 2 * (now.kernel_ms - rank.kernel_then_ms) > used_ms;
    rank.works = used_ms > kIdleMs + still_ms * kIdlePercent / 100 && !polls;
    // A native rank that sleeps in short steps may be seen between two of them, at no place that is known.
    const bool seen_anywhere = now.phrase != stacks::kRunning;
    const bool elsewhere =
        seen_anywhere && rank.seen.phrase != stacks::kRunning && now.phrase != rank.seen.phrase;
    const bool transfers = now.bytes != rank.seen.bytes;
    // A computing rank is at another line each time: that is its work, and may be an endless loop.
    // A program that is not Python, asleep at another place of its own than before.
    const bool went_on = now.spot != 0 && rank.seen.spot != 0 && now.spot != rank.seen.spot;
    moved = moved || transfers || went_on || (elsewhere && !rank.works);
    if (known == ranks_.end() || now.scheduled.sleeps != rank.seen.scheduled.sleeps) rank.slept = at;
    // The end of a child process removes its times.
    if (rank.works || elsewhere || transfers || now.processor_ms < rank.used_then_ms) {
      rank.since = at;
      rank.used_then_ms = now.processor_ms;
      rank.kernel_then_ms = now.kernel_ms;
      rank.waited = false;
    }
    rank.waited = rank.waited || now.stand == stacks::Stand::kWaits;
    std::string before = std::move(rank.seen.phrase);
    const std::uint64_t spot = now.spot != 0 ? now.spot : rank.seen.spot;
    rank.seen = now;
    rank.seen.spot = spot;
    if (!seen_anywhere) rank.seen.phrase = std::move(before);
    rank.seen.text.clear();
    ranks.emplace(now.rank, std::move(rank));
  }
  ranks_ = std::move(ranks);
  calls_ = seen.calls;
  looked_ = at;
  if (moved) moved_ = at;
}

void Standstill::Resume(const std::vector<int>& ranks, const protocol::Inspected& seen,
                        Clock::time_point at) {
  for (const verdict::RankDoing& now : seen.ranks) {
    const auto known = ranks_.find(now.rank);
    if (known == ranks_.end() || std::ranges::count(ranks, now.rank) == 0) continue;
    known->second.seen.scheduled.sleeps = now.scheduled.sleeps;  // the tool has stopped it
    if (!known->second.works) continue;
    known->second.since = at;
    known->second.used_then_ms = now.processor_ms;
    known->second.kernel_then_ms = now.kernel_ms;
  }
}

StallWatch::StallWatch(boost::asio::io_context& loop, StallPolicy policy, Events events)
    : timer_(loop),
      policy_(policy),
      every_(std::max(std::min(policy.after / kLooksPerLimit, policy.deadlock_after / 2), kNotMoreOften)),
      events_(std::move(events)) {
  if (policy_.after.count() > 0) WaitUntil(printed_ + every_);
}

void StallWatch::Progress() {
  printed_ = Clock::now();
  standstill_.Forget();
  told_ = Told::kNothing;
}

void StallWatch::WaitUntil(Clock::time_point at) {
  timer_.expires_at(at);
  timer_.async_wait([this, ended = ended_](const boost::system::error_code& error) {
    if (error || *ended) return;
    const auto due = printed_ + every_;
    Clock::now() < due ? WaitUntil(due) : Look();
  });
}

void StallWatch::Look() {
  const auto begin = Clock::now();
  WaitUntil(begin + std::max(every_, kNoAnswer));
  events_.look(
      [this, begin, ended = ended_](const protocol::Inspected& now) {
        if (*ended) return;
        WaitUntil(std::max(begin + every_, Clock::now()));
        if (printed_ < begin) Judge(now);
      },
      {});
}

void StallWatch::Judge(const protocol::Inspected& now) {
  standstill_.Add(now, Clock::now());
  Stall stall{standstill_.Lasts(), now.ranks, {}};
  for (verdict::RankDoing& rank : stall.ranks)
    if (rank.stand == stacks::Stand::kMayWait && standstill_.Waited(rank.rank))
      rank.stand = stacks::Stand::kWaits;
  if (stall.standstill == std::chrono::nanoseconds(0)) told_ = Told::kNothing;
  stall.deadlock = IsDeadlock(stall.ranks);
  if (stall.standstill < policy_.after) {
    if (!stall.deadlock || told_ != Told::kNothing || stall.standstill < policy_.deadlock_after) return;
    told_ = Told::kDeadlock;
    return events_.stalled(stall);
  }
  for (const verdict::RankDoing& rank : now.ranks) {
    if (standstill_.Works(rank.rank) || rank.phrase.starts_with(stacks::kStoppedBy)) {
      stall.working.push_back(rank.rank);
    } else {
      stall.standstill = std::min(stall.standstill, standstill_.Lasts(rank.rank));
    }
  }
  // Ranks that do not work now may have worked a moment ago.
  if (stall.working.size() == now.ranks.size() || stall.standstill < policy_.after) return;
  std::vector<int> unclear;
  for (const verdict::RankDoing& rank : now.ranks) {
    if (std::ranges::count(stall.working, rank.rank) == 0) continue;
    if (standstill_.Awake(rank.rank) < policy_.after) continue;
    if (!rank.in_source) unclear.push_back(rank.rank);
    if (policy_.fails && rank.in_source && rank.stand == stacks::Stand::kWaits)
      std::erase(stall.working, rank.rank);
  }
  const bool due = !looked_closer_ || Clock::now() - *looked_closer_ >= policy_.after;
  if (policy_.fails && !unclear.empty() && due) return LookCloser(std::move(stall), unclear);
  Tell(stall);
}

void StallWatch::LookCloser(Stall stall, const std::vector<int>& unclear) {
  looked_closer_ = Clock::now();
  const auto judge = [this, stall = std::move(stall), unclear, printed = printed_,
                      ended = ended_](const protocol::Inspected& now) mutable {
    if (*ended || printed != printed_) return;
    standstill_.Resume(unclear, now, Clock::now());
    for (const verdict::RankDoing& doing : now.ranks) {
      const auto known = std::ranges::find(stall.ranks, doing.rank, &verdict::RankDoing::rank);
      if (known == stall.ranks.end() || std::ranges::count(stall.working, doing.rank) == 0) continue;
      *known = doing;
      if (doing.stand == stacks::Stand::kWaits) std::erase(stall.working, doing.rank);
    }
    Tell(stall);
  };
  events_.look(judge, unclear);
}

void StallWatch::Tell(const Stall& stall) {
  const Told tells = stall.working.empty() ? Told::kAll : Told::kSomeWork;
  if (told_ >= tells) return;
  told_ = tells;
  events_.stalled(stall);
}

bool StallWatch::IsDeadlock(const std::vector<verdict::RankDoing>& ranks) const {
  return verdict::WaitInDifferentCollectives(ranks) &&
         std::ranges::none_of(ranks,
                              [&](const verdict::RankDoing& rank) { return standstill_.Works(rank.rank); });
}

}  // namespace dtrun::observe
