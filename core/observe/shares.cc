#include "core/observe/shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/verdict/awaiting.h"
#include "core/verdict/verdict.h"

namespace dtrun::observe {
namespace {

constexpr std::size_t kMostPlaces = 256;  // of one rank; a place that comes later is not counted
// The worst healthy job has a late rank in every look, each time another one at random. A rank of such a job
// is named with this probability at most.
constexpr double kChance = 0.002;

// The probability that one of two equally late ranks was the late one in at least `more` of more + less
// looks.
double AtLeast(int more, int less) {
  const int looks = more + less;
  double term = std::pow(0.5, looks),
         sum = 0;  // of k = 0, then of k + 1: fewer of the looks were the other's
  for (int k = 0; k <= less; ++k) {
    sum += term;
    term = term * (looks - k) / (k + 1);
  }
  return sum;
}

bool Waits(const verdict::RankDoing& doing) { return doing.stand == stacks::Stand::kWaits; }

// Those that at least half of the others wait for, directly or not, and who these are. The others are the
// ranks on the way to it.
std::map<int, std::set<int>> Delaying(const std::vector<verdict::RankDoing>& looked) {
  const verdict::Awaiting awaiting(looked);
  struct Late {
    std::set<int> waiters, others;
  };
  std::map<int, Late> by_rank;
  for (const verdict::Awaiting::Way& way : awaiting.Ways()) {
    for (const int rank : way.found.late) {
      Late& late = by_rank[rank];
      late.waiters.insert(way.from.begin(), way.from.end());
      late.others.insert(way.found.passed.begin(), way.found.passed.end());
    }
  }
  std::map<int, std::set<int>> out;
  for (auto& [rank, late] : by_rank) {
    late.others.insert(late.waiters.begin(), late.waiters.end());
    if (2 * late.waiters.size() >= late.others.size() - 1) out[rank] = std::move(late.waiters);
  }
  return out;
}

}  // namespace

void Shares::Add(const std::vector<verdict::RankDoing>& looked, Clock::time_point at) {
  ++looks_;
  const std::map<int, std::set<int>> delaying = Delaying(looked);
  std::set<int> anew;  // in another wait than at the look before
  for (const verdict::RankDoing& doing : looked) {
    std::optional<std::int64_t>& wait = ranks_[doing.rank].wait;
    if (!Waits(doing)) continue;
    if (wait != doing.Wait()) anew.insert(doing.rank);
    wait = doing.Wait();
  }
  for (const verdict::RankDoing& doing : looked) {
    Rank& rank = ranks_[doing.rank];
    if (rank.looks++ == 0) {
      rank.first = at;
      rank.before = UseOf(doing);
    }
    rank.last = at;
    rank.use = UseOf(doing);
    rank.gpu = doing.gpu;
    rank.now = doing.Said();
    rank.in_source = doing.in_source;
    rank.waits += Waits(doing) ? 1 : 0;
    rank.input += doing.loads ? 1 : 0;
    rank.saves += doing.saves ? 1 : 0;
    const auto late = delaying.find(doing.rank);
    if (late == delaying.end()) continue;
    ++rank.delays;
    for (const int waiter : late->second) ++rank.whom[waiter];
    if (std::ranges::any_of(late->second, [&](int waiter) { return anew.contains(waiter); })) ++rank.counted;
    if (rank.places.size() < kMostPlaces || rank.places.contains(doing.phrase)) ++rank.places[doing.phrase];
  }
}

std::vector<RankShare> Shares::Ranks() const {
  std::vector<RankShare> out;
  for (const auto& [number, rank] : ranks_) {
    RankShare& share = out.emplace_back();
    const auto of_looks = [&rank = rank](int count) { return static_cast<double>(count) / rank.looks; };
    share.rank = number;
    share.looks = rank.looks;
    share.waits = of_looks(rank.waits);
    share.input = of_looks(rank.input);
    share.saves = of_looks(rank.saves);
    share.resident = rank.use.resident;
    share.gpu = rank.gpu;
    share.delays = of_looks(rank.delays);
    share.now = rank.now;
    share.in_source = rank.in_source;
    const auto usual =
        std::ranges::max_element(rank.places, {}, [](const auto& place) { return place.second; });
    if (usual != rank.places.end()) share.usual = usual->first;
    for (const auto& [waiter, count] : rank.whom)
      if (2 * count >= rank.delays) share.whom.push_back(waiter);
    if (share.whom.size() + 1 == ranks_.size()) share.whom.clear();
    const double seconds = std::chrono::duration<double>(rank.last - rank.first).count();
    if (seconds <= 0) continue;
    // Processes that have ended take their counts along.
    const auto rate = [seconds](std::int64_t before, std::int64_t now) {
      return static_cast<double>(std::max<std::int64_t>(now - before, 0)) / seconds;
    };
    share.processors = rate(rank.before.processor_ms, rank.use.processor_ms) / 1e3;
    share.bytes = rate(rank.before.bytes, rank.use.bytes);
    share.faults = rate(rank.before.faults, rank.use.faults);
    share.network = rate(rank.before.network, rank.use.network);
  }
  return out;
}

std::optional<RankShare> Shares::Straggler(double least) const {
  std::vector<RankShare> ranks = Ranks();
  if (ranks.size() < 2) return std::nullopt;
  std::ranges::sort(ranks, std::greater(), &RankShare::delays);
  const RankShare& first = ranks.front();
  if (first.delays < least) return std::nullopt;
  const auto count = [this](const RankShare& rank) { return ranks_.at(rank.rank).counted; };
  const double chance = AtLeast(count(first), count(ranks[1])) * static_cast<double>(ranks.size());
  return chance <= kChance ? std::optional(first) : std::nullopt;
}

std::string StragglerText(const RankShare& straggler) {
  const std::string whom =
      straggler.whom.empty() ? std::string("the others") : verdict::FoldRanks(straggler.whom);
  return fmt::format("rank {} makes {} wait: in {:.0f} % of {} looks it was elsewhere{}{}, while {} waited",
                     straggler.rank, whom, 100 * straggler.delays, straggler.looks,
                     straggler.usual.empty() ? "" : ", mostly ", straggler.usual,
                     straggler.whom.size() == 1 ? "that" : "they");
}

}  // namespace dtrun::observe
