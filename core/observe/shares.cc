#include "core/observe/shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

bool IsElsewhere(const verdict::RankDoing& doing) { return doing.stand == stacks::Stand::kElsewhere; }
bool Waits(const verdict::RankDoing& doing) { return doing.stand == stacks::Stand::kWaits; }

}  // namespace

void Shares::Add(const std::vector<verdict::RankDoing>& looked, Clock::time_point at, bool anew) {
  ++looks_;
  const auto waiting = std::ranges::count_if(looked, Waits);
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
    const bool delays = IsElsewhere(doing) && waiting > 0 && 2 * waiting >= std::ssize(looked) - 1;
    if (!delays) continue;
    ++rank.delays;
    rank.counted += anew ? 1 : 0;
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
  return fmt::format(
      "rank {} makes the others wait: in {:.0f} % of {} looks it was elsewhere{}{}, while they waited",
      straggler.rank, 100 * straggler.delays, straggler.looks, straggler.usual.empty() ? "" : ", mostly ",
      straggler.usual);
}

}  // namespace dtrun::observe
