#include "core/observe/straggler.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "core/observe/shares.h"
#include "core/verdict/awaiting.h"

namespace dtrun::observe {
namespace {

using protocol::RankLooks;

// A share from looks may be larger than one from times: the look itself delays a rank at work.
constexpr double kAllowance = 0.15;
// A process of another program explains a share of delays from which on it is worth to be told.
constexpr double kWithRival = 0.3, kWithoutRival = 0.6;

bool IsElsewhereAt(char letter) { return letter == RankLooks::kComputes || letter == RankLooks::kElsewhere; }
bool WaitsAt(char letter) { return letter == RankLooks::kWaits || letter == RankLooks::kStillWaits; }

// At each position the moment that is `times` as late as before.
void Widen(RankLooks* looks, std::uint32_t times) {
  std::string letters, whom;
  for (std::size_t i = times - 1; i < looks->letters.size(); i += times) {
    const std::string_view passed = std::string_view(looks->letters).substr(i + 1 - times, times);
    const bool still =
        std::ranges::all_of(passed, [](char letter) { return letter == RankLooks::kStillWaits; });
    letters += passed.back() == RankLooks::kStillWaits && !still ? RankLooks::kWaits : passed.back();
    if (i < looks->whom.size()) whom += looks->whom[i];
  }
  looks->letters = std::move(letters);
  looks->whom = std::move(whom);
  looks->every *= times;
}

// How much more of the time its first thread was busy than those of the others, on average; 1 if unknown.
double BusierBy(const std::vector<RankLooks>& all, const RankLooks& one) {
  double others = 0;
  int known = 0;
  for (const RankLooks& looks : all) {
    if (&looks == &one || looks.active_percent < 0) continue;
    others += looks.active_percent / 100.0;
    ++known;
  }
  return known == 0 || one.active_percent < 0 ? 1 : one.active_percent / 100.0 - others / known;
}

verdict::RankDoing DoingAt(const RankLooks& looks, std::size_t at, std::int64_t wait) {
  verdict::RankDoing doing;
  doing.rank = looks.rank;
  const char letter = looks.letters[at];
  doing.stand = WaitsAt(letter)         ? stacks::Stand::kWaits
                : IsElsewhereAt(letter) ? stacks::Stand::kElsewhere
                                        : stacks::Stand::kUnknown;
  doing.phrase = looks.place;
  doing.scheduled.sleeps = wait;
  doing.groups = looks.groups;
  const char whom = at < looks.whom.size() ? looks.whom[at] : RankLooks::kAnyone;
  const auto index = static_cast<std::size_t>(whom - RankLooks::kFirstAwaited);
  if (whom != RankLooks::kAnyone && index < looks.awaited.size()) doing.awaited = looks.awaited[index];
  return doing;
}

}  // namespace

std::optional<verdict::Straggler> StragglerOf(std::vector<RankLooks> looks) {
  std::uint32_t every = 1;
  std::size_t length = 0;
  for (const RankLooks& one : looks) every = std::max(every, one.every);
  for (RankLooks& one : looks) {
    if (every % one.every != 0) return std::nullopt;
    Widen(&one, every / one.every);
    length = std::max(length, one.letters.size());
  }
  Shares shares;
  bool met = false;                  // before any rank waited, they were starting
  std::map<int, std::int64_t> wait;  // by rank: when it began
  for (std::size_t at = 0; at < length; ++at) {
    std::vector<verdict::RankDoing> looked;
    for (const RankLooks& one : looks) {
      if (at >= one.letters.size() || one.letters[at] == RankLooks::kMissed) continue;
      if (one.letters[at] == RankLooks::kWaits) wait[one.rank] = static_cast<std::int64_t>(at);
      looked.push_back(DoingAt(one, at, wait[one.rank]));
      met = met || WaitsAt(one.letters[at]);
    }
    verdict::ResolveAwaited(&looked);
    if (met && !looked.empty()) shares.Add(looked, Shares::Clock::time_point(std::chrono::seconds(at)));
  }
  const auto late = shares.Straggler(kWithRival);
  if (!late) return std::nullopt;
  const auto found = std::ranges::find(looks, late->rank, &RankLooks::rank);
  const auto of_looks = [&](char letter) {
    return static_cast<double>(std::ranges::count(found->letters, letter)) / late->looks;
  };
  // Of the looks in which it was elsewhere, the part in which it was at work must show in its time.
  const double asleep = std::min(late->delays, of_looks(RankLooks::kElsewhere));
  const double at_work = late->delays - asleep;
  const double delays = asleep + std::min(at_work, std::max(BusierBy(looks, *found) + kAllowance, 0.0));
  // In a third of these looks at least: the scan for it needs two of them. It does not hold up a sleeper.
  const bool rival =
      found->rival > 0 && at_work >= asleep && 3 * found->rival_looks >= late->delays * late->looks;
  if (delays < (rival ? kWithRival : kWithoutRival)) return std::nullopt;
  verdict::Straggler straggler{late->rank, static_cast<int>(std::lround(100 * late->delays)), late->looks,
                               late->usual};
  straggler.whom = late->whom;
  if (rival) {
    straggler.rival = found->rival;
    straggler.rival_command = found->rival_command;
  }
  return straggler;
}

}  // namespace dtrun::observe
