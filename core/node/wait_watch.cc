#include "core/node/wait_watch.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/stacks/doing.h"

namespace dtrun::node {
namespace {

using protocol::RankLooks;

constexpr std::size_t kMostKeys = 256;  // places or rivals of a rank that are told apart
constexpr std::uint32_t kLongestPause = 4096;
// Share of the time for which a rank waited for a processor from which on a rival is looked for.
constexpr double kLacksProcessor = 0.2;

// A program waits that takes naps between two looks at a call under way. Of one without Python frames only
// its recorded calls are known: while one is under way, it waits, unless it computes. Outside of them one
// that naps may wait by means of its own.
void AddCall(verdict::RankDoing* doing) {
  using stacks::Stand;
  if (doing->MayPoll()) doing->stand = Stand::kElsewhere;
  if (doing->stand != Stand::kUnknown && doing->stand != Stand::kElsewhere) return;
  const bool under_way = doing->call->under_way, polls = under_way && doing->naps && doing->call->polled;
  if (doing->in_source && !polls) return;
  // One that naps with a call under way, and never asks for it, has other things to do.
  const bool may_wait = under_way ? polls || !doing->naps : doing->naps;
  if (doing->stand == Stand::kElsewhere && may_wait) doing->stand = Stand::kUnknown;
  if (doing->stand != Stand::kUnknown) return;
  if (under_way && doing->phrase != stacks::kRunning) doing->stand = Stand::kWaits;
  if (!under_way && doing->runs) doing->stand = Stand::kElsewhere;
}

// What the recorded calls say of all that were seen.
void JudgeByCalls(std::vector<verdict::RankDoing>* seen) {
  using stacks::Stand;
  for (verdict::RankDoing& doing : *seen) {
    if (!doing.call) continue;
    AddCall(&doing);
    // Another thread of it is in a collective.
    if (doing.call->under_way && !doing.call->message && doing.stand == Stand::kElsewhere)
      doing.stand = Stand::kMayWait;
  }
}

char LetterOf(const verdict::RankDoing& doing) {
  if (doing.joins) return RankLooks::kOther;
  if (doing.stand == stacks::Stand::kWaits) return RankLooks::kWaits;
  if (doing.stand != stacks::Stand::kElsewhere) return RankLooks::kOther;
  return doing.runs ? RankLooks::kComputes : RankLooks::kElsewhere;
}

// The letter for whom it waits, which the list may be made longer for.
char WhomOf(const verdict::RankDoing& doing, std::vector<contract::Awaited>* known) {
  constexpr std::size_t kMost = RankLooks::kLastAwaited - RankLooks::kFirstAwaited + 1;
  if (!doing.awaited || doing.stand != stacks::Stand::kWaits) return RankLooks::kAnyone;
  contract::Awaited awaited = *doing.awaited;
  awaited.number = 0;
  if (known->empty()) known->emplace_back();  // the first one: none
  auto found = std::ranges::find(*known, awaited);
  if (found == known->end() && known->size() < kMost) found = known->insert(found, std::move(awaited));
  if (found == known->end()) found = known->begin();
  return static_cast<char>(RankLooks::kFirstAwaited + (found - known->begin()));
}

void AddGroups(const verdict::RankDoing& doing, std::vector<contract::Membership>* known) {
  for (const contract::Membership& group : doing.groups) {
    const bool fresh =
        std::ranges::find(*known, group.communicator, &contract::Membership::communicator) == known->end();
    if (fresh && known->size() < RankLooks::kMostGroups) known->push_back(group);
  }
}

template <class Key>
void Count(std::map<Key, int>& counts, const Key& key) {
  if (counts.size() < kMostKeys || counts.contains(key)) ++counts[key];
}

template <class Key>
auto MostFrequent(const std::map<Key, int>& counts) {
  return std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
}

}  // namespace

WaitWatch::WaitWatch(asio::io_context& loop, Living living, Calls calls, std::chrono::milliseconds interval)
    : timer_(loop),
      inspector_(loop),
      living_(std::move(living)),
      calls_(std::move(calls)),
      interval_(interval) {
  Wait();
}

void WaitWatch::Wait() {
  const auto passed = Clock::now() - begun_;
  timer_.At(begun_ + (passed / interval_ + 1) * interval_, [this] {
    Look();
    Wait();
  });
}

void WaitWatch::Look() {
  auto look = static_cast<std::size_t>((Clock::now() - begun_) / interval_) - 1;
  while (look >= kMostLooks) {
    Halve();
    if (look % 2 == 0) return;  // no moment of the longer interval
    look /= 2;
  }
  if (looking_ || paused_++ < pause_) return;
  looking_ = true;
  paused_ = 0;
  std::vector<Inspector::Target> targets = living_();
  for (Inspector::Target& target : targets) {  // what is not kept is not read
    target.given.clear();
    target.detail = stacks::Detail::kPlace;
  }
  inspector_.Look(targets, [this, look, every = every_, count = targets.size()](const auto& seen) {
    looking_ = false;
    pause_ = seen.size() < count ? std::clamp<std::uint32_t>(2 * pause_, 1, kLongestPause) : 0;
    if (every == every_) Add(look, seen);
  });
}

void WaitWatch::Halve() {
  const auto halve = [](auto& list) {
    for (std::size_t i = 1; i < list.size(); i += 2) list[i / 2] = list[i];
    list.resize(list.size() / 2);
  };
  for (auto& [number, rank] : ranks_) {
    halve(rank.looks.letters);
    halve(rank.looks.whom);
    halve(rank.waits);
  }
  interval_ *= 2;
  every_ *= 2;
}

void WaitWatch::Add(std::size_t look, std::vector<verdict::RankDoing> seen) {
  calls_(seen);
  JudgeByCalls(&seen);
  // The others have not begun either: where a late rank is now is its start.
  const bool joining = std::ranges::any_of(seen, &verdict::RankDoing::joins);
  for (auto& [number, rank] : ranks_)
    if (joining) rank.places.clear();
  for (const verdict::RankDoing& doing : seen) {
    Rank& rank = ranks_[doing.rank];
    rank.looks.letters.resize(look, RankLooks::kMissed);
    rank.waits.resize(look, doing.scheduled.sleeps);
    AddUse(rank, doing);
    rank.looks.whom.resize(look, RankLooks::kAnyone);
    rank.looks.letters.push_back(LetterOf(doing));
    rank.looks.whom.push_back(WhomOf(doing, &rank.looks.awaited));
    AddGroups(doing, &rank.looks.groups);
    rank.waits.push_back(doing.Wait());
    if (doing.stand == stacks::Stand::kElsewhere && !joining) Count(rank.places, doing.Said());
  }
}

// Where the kernel does not count the time on a processor, `watched` stays 0.
void WaitWatch::AddUse(Rank& rank, const verdict::RankDoing& doing) {
  const auto now = Clock::now();
  const stacks::Scheduled& scheduled = doing.scheduled;
  const stacks::Scheduled before = std::exchange(rank.last, scheduled);
  const auto passed = now - std::exchange(rank.looked, now);
  if (before.ran.count() == 0 || scheduled.ran < before.ran) return;
  const auto delayed = scheduled.delayed - before.delayed;
  rank.active += scheduled.ran - before.ran + delayed;
  rank.watched += passed;
  if (delayed < kLacksProcessor * passed) return;
  rivals_.Scan();
  if (const auto rival = rivals_.Of(doing.pid)) Count(rank.rivals, *rival);
}

std::vector<RankLooks> WaitWatch::Seen() const {
  std::vector<RankLooks> all;
  for (const auto& [number, rank] : ranks_) {
    RankLooks& looks = all.emplace_back(rank.looks);
    looks.rank = number;
    looks.every = every_;
    std::optional<std::int64_t> wait;
    for (std::size_t i = 0; i < looks.letters.size(); ++i) {
      if (looks.letters[i] != RankLooks::kWaits) continue;
      if (wait == rank.waits[i]) looks.letters[i] = RankLooks::kStillWaits;
      wait = rank.waits[i];
    }
    looks.active_percent =
        rank.watched.count() == 0
            ? -1
            : static_cast<int>(std::clamp<std::int64_t>(100 * rank.active / rank.watched, 0, 100));
    if (const auto place = MostFrequent(rank.places); place != rank.places.end()) looks.place = place->first;
    if (const auto rival = MostFrequent(rank.rivals); rival != rank.rivals.end()) {
      looks.rival = rival->first.pid;
      looks.rival_command = rival->first.command;
      for (const auto& [one, count] : rank.rivals) looks.rival_looks += count;
    }
  }
  return all;
}

}  // namespace dtrun::node
